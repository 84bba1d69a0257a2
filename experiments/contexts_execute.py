"""Measures what is not measured yet; several processes may share the work."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from condsim.contexts import (
    CORPUS,
    SURROGATE,
    Center,
    Corpus,
    OpenedRun,
    OriginScorer,
    similarity,
)
from condsim.errors import require
from condsim.evaluation import Report, Scores, measure
from condsim.files import replacing
from condsim.loading import load_scorer
from condsim.progress import Progress, silent
from condsim.scorers import TfIdfCosineScorer, WordOverlapScorer
from condsim.types import FloatArray, Scorer
from experiments.contexts_making import BusyError, PartMaker
from experiments.contexts_parts import counts_of, part_folder
from experiments.contexts_plan import Measurement, expected_cost
from experiments.contexts_terms import missing_pairs, stored_blocks, write_blocks

_LOGGER = logging.getLogger("condsim")
_COUNTS = "counts.json"
_SCORES = "scores.npy"


@dataclass(frozen=True)
class Counted:
    """What a measurement was made of.

    Attributes:
        pairs: Pairs of sentences scored.
        contexts: Contexts of a pair on average, C_s1 and C_s2 together; None without contexts.
        without_contexts: Sentences that got random contexts; None without contexts.
        corpus_tokens: Tokens of the corpus; None if no corpus was used.
        training_pairs: Harvested pairs a surrogate was trained on; None if there is none.
    """

    pairs: int
    contexts: float | None = None
    without_contexts: int | None = None
    corpus_tokens: int | None = None
    training_pairs: int | None = None


def counted(measurement: Measurement) -> Counted:
    """Reads what a finished measurement was made of.

    Args:
        measurement: A finished one.

    Returns:
        The counts.
    """
    text = (measurement.folder / _COUNTS).read_text(encoding="utf-8")
    return Counted(**json.loads(text))


def finished_scores(measurement: Measurement) -> FloatArray:
    """Reads the scores of a finished measurement.

    Args:
        measurement: A finished one.

    Returns:
        A score for each row of its set, ``(n,)``.
    """
    scores: FloatArray = np.load(measurement.folder / _SCORES)
    return scores


class Measuring:
    """The measurements that are still to be made, and the scorer that is at work."""

    def __init__(
        self, planned: Sequence[Measurement], runs: Path, *, progress: Progress = silent
    ) -> None:
        """Takes the work; nothing is done.

        Args:
            planned: Measurements, finished or not.
            runs: The folder of all runs.
            progress: Told how far each step is.
        """
        self.missing = [one for one in planned if not one.finished]
        self._runs = runs
        self._progress = progress
        self._maker = PartMaker(runs, progress=progress)
        self._centred: dict[Path, Center] = {
            one.terms("none"): one.center
            for one in self.missing
            if one.how.scorer == "origin" and one.center != "none"
        }
        self._opened: tuple[Path, OriginScorer] | None = None

    def costs(self) -> list[str]:
        """Says what is to be done, before it is.

        Returns:
            One line for each scoring and each harvest, with the sequences that generators score.
        """
        lines: dict[Path, str] = {}
        for one in self.missing:
            cost = expected_cost(one, self._means(one))
            if cost is None:
                continue
            if one.part == "origin":
                what = f"origin on {one.gold.label}"
                where = one.terms(self._means(one))
            else:
                what = "harvest"
                where = part_folder(self._runs, "harvest", one.recipe)
            lines[where] = f"{what}, at most: {cost} ({where.relative_to(self._runs)})"
        return list(lines.values())

    def finish(self) -> None:
        """Measures until nothing is missing.

        What another process is at is left to it and waited for at the end.

        Raises:
            KeyboardInterrupt: If Ctrl-C ended it; the same call goes on from there.
            InputError: If recipes or data break a rule.
            ModelError: If a training diverged.
        """
        if not self.missing:
            return
        for module in ("pyarrow", "sentencex", "filelock", "sentence_transformers"):
            require(module, extra="contexts")
        for line in self.costs():
            _LOGGER.info("to be done: %s", line)
        for wait in (False, True):
            left = []
            for one in self.missing:
                try:
                    self._measure(one, wait=wait)
                except BusyError as busy:
                    _LOGGER.info("left to another process for now: %s", busy)
                    left.append(one)
            self.missing = left

    def _measure(self, one: Measurement, *, wait: bool) -> None:
        if one.finished:
            return
        if one.part is not None:
            self._maker.make(one.part, one.recipe, wait=wait, tell=_LOGGER.info)
        task = one.gold.task
        _LOGGER.info("%s on %s: %s", one.how.scorer, one.gold.label, one.folder.name)
        if one.how.scorer == "origin":
            name = f"{one.recipe.name} origin"
            terms = self._terms(one, wait=wait)
            scores, counts = _origin_scores(one, terms)
        else:
            scorer = _scorer(one)
            name = scorer.name
            scores = np.asarray(scorer.score(task.sentences1, task.sentences2, None), np.float32)
            counts = Counted(len(task))
        report = measure(Scores(name, scores), task)
        _write(one, report, scores, self._with_parts(one, counts))

    def _means(self, one: Measurement) -> Center:
        """Which means to compute: what this row needs or, if none, another of the same scorer."""
        if one.center != "none":
            return one.center
        return self._centred.get(one.terms("none"), "none")

    def _terms(self, one: Measurement, *, wait: bool) -> Path:
        """Computes the terms that are missing, the cost said first; gives their folder."""
        task, label = one.gold.task, f"origin on {one.gold.label}"
        for center in get_args(Center):  # terms with means serve scores without them too
            folder = one.terms(center)
            if one.center in ("none", center) and not missing_pairs(folder, len(task)):
                return folder
        folder = one.terms(self._means(one))
        with self._maker.own(folder, wait=wait):
            if left := missing_pairs(folder, len(task)):
                scorer = self._origin(one)
                todo = {*task.sentences1[-left:], *task.sentences2[-left:]}
                cost = scorer.cost(sentences=len(todo), pairs=left)
                _LOGGER.info("%s, to be done: %s", label, cost)
                progress = partial(self._progress, label)
                write_blocks(folder, scorer, task, progress=progress)
        return folder

    def _origin(self, one: Measurement) -> OriginScorer:
        """The origin model, the last one kept open."""
        folder = one.terms(self._means(one))
        if self._opened is None or self._opened[0] != folder:
            scoring = one.recipe.scoring.replaced(center=self._means(one))
            recipe = one.recipe.replaced(scoring=scoring)
            opened = OpenedRun(one.part_folder, recipe, progress=self._progress)
            self._opened = (folder, opened.scorer)
        return self._opened[1]

    def _with_parts(self, one: Measurement, counts: Counted) -> Counted:
        """Adds what the parts hold."""
        values = asdict(counts)
        if one.part is not None:
            corpus = counts_of("corpus", self._runs, one.recipe) or {}
            values["corpus_tokens"] = corpus.get("tokens")
        if one.part == "surrogate":
            made = counts_of("surrogate", self._runs, one.recipe) or {}
            values["training_pairs"] = made.get("training_pairs")
        return Counted(**values)


def _origin_scores(one: Measurement, terms: Path) -> tuple[FloatArray, Counted]:
    """Cosines of Eq. 4 from stored terms."""
    scores: list[float] = []
    contexts = lost = 0
    rows = len(one.gold.task)
    for block in stored_blocks(terms, rows):
        for pair in block.pairs:
            scores.append(similarity(pair, weights=one.weights, center=one.center))
            contexts += len(next(iter(pair.first.values())))
        lost += block.without_contexts
    found = Counted(rows, contexts=contexts / rows, without_contexts=lost)
    return np.array(scores, np.float32), found


def _scorer(one: Measurement) -> Scorer:
    if one.how.scorer == "surrogate":
        return load_scorer(one.part_folder / SURROGATE)
    if one.how.scorer == "tfidf-cosine":
        return TfIdfCosineScorer(idf_from=Corpus.open(one.part_folder / CORPUS))
    return WordOverlapScorer()


def _write(one: Measurement, report: Report, scores: FloatArray, counts: Counted) -> None:
    """Writes what was found, the report last."""
    one.folder.mkdir(parents=True, exist_ok=True)
    with replacing(one.folder / _SCORES) as partial, partial.open("wb") as stream:
        np.save(stream, scores)
    with replacing(one.folder / _COUNTS) as partial:
        partial.write_text(json.dumps(asdict(counts)), encoding="utf-8")
    report.to_json(one.report)
