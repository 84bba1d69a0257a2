"""Measure by contexts: the runs of an experiment, the counts they leave, and what they found."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from condsim.console import Progress
from condsim.errors import require
from condsim.evaluation.evaluate import Scores, evaluate
from condsim.evaluation.report import Report
from condsim.io import replacing, write_text
from condsim.loading import load_scorer
from condsim.model.baselines import WordOverlapScorer
from condsim.types import FloatArray, Scorer
from condsim_contexts.coherence import CoherenceReport
from condsim_contexts.corpus import Corpus
from condsim_contexts.equations import similarity
from condsim_contexts.generators import GeneratorReport
from condsim_contexts.origin import ContextsRun, OriginScorer
from condsim_contexts.recipe import COHERENCE, CORPUS, GENERATORS, REPORT, SURROGATE, Center
from condsim_contexts.trainer import read_report
from papers.baselines import CorpusTfIdfScorer
from papers.catalogue import Experiment
from papers.columns import TEST_SETS
from papers.contexts.cases import cases
from papers.contexts.parts import PartMaker, counts_of
from papers.contexts.plan import ContextsLine, Measurement, measurements, plan_contexts
from papers.contexts.terms import missing_pairs, stored_blocks, write_blocks
from papers.options import Options
from papers.plots import plot_results
from papers.results import Difference, Interval, Line, Results, differences, line_of

_LOGGER = logging.getLogger("condsim")
_COUNTS = "counts.json"
_SEED = 0
_ON_DEV = ", its settings (λ, copying, |C_s|) chosen on *labeled* pairs of STS-B dev"
_COUNT_NOTES = {
    "corpus_tokens": "Corpus: {} tokens.",
    "contexts": "Contexts of a pair, C_s1 and C_s2 together: {}.",
    "without_contexts": "Sentences that share no word with the corpus and got random contexts: {}.",
}
# Recipes whose files have the same content.
_TUNED = {"openstax": _ON_DEV, "captions": _ON_DEV}


Counts = dict[str, float]
"""What a measurement took, by name.

``pairs``: pairs of sentences scored; ``contexts``: contexts of a pair on average, C_s1 and C_s2
together; ``without_contexts``: sentences that got random contexts; ``corpus_tokens``: tokens of the
corpus; ``training_pairs``: harvested pairs a surrogate was trained on.
"""


class FromContextsWork:
    """The work of experiments of similarity from contexts, and the scorer that is open."""

    def __init__(self, experiment: Experiment, options: Options, progress: Progress) -> None:
        self._experiment, self._options, self._progress = experiment, options, progress
        self.lines = plan_contexts(experiment, options)
        self.runs = measurements(self.lines)
        self._maker = PartMaker(options.runs, progress=progress)
        self._centered: dict[Path, Center] = {
            run.terms("none"): run.center
            for run in self.runs
            if run.how.scorer == "origin" and run.center != "none" and not run.finished
        }
        self._opened: tuple[Path, OriginScorer] | None = None

    def finished(self, run: Measurement) -> bool:
        """True if it is measured."""
        return run.finished

    def prepare(self, missing: Sequence[Measurement]) -> Sequence[Measurement]:
        """Check that the libraries are there."""
        for module in ("pyarrow", "sentencex", "filelock", "sentence_transformers"):
            require(module, extra="contexts")
        return missing

    def make(self, run: Measurement) -> None:
        """Make the parts that are missing, scores and measures."""
        if run.part is not None:
            self._maker.make(run.part, run.recipe)
        task = run.gold.task
        _LOGGER.info("%s on %s: %s", run.how.scorer, run.gold.label, run.folder.name)
        if run.how.scorer == "origin":
            name = f"{run.recipe.name} origin"
            scores, counts = _origin_scores(run, self._terms(run))
        else:
            scorer = _scorer(run)
            name = scorer.name
            scores = np.asarray(scorer.score(task.sentences1, task.sentences2, None), np.float32)
            counts = {"pairs": len(task)}
        report = evaluate(Scores(name, scores), task)
        _write(run, report, scores, counts | self._part_counts(run))

    def plot(self, results: Results, path: Path) -> None:
        """Draw dots or curves."""
        plot_results(results, path)

    def results(self) -> Results:
        """The lines of the table, the differences, and where the numbers come from."""
        counts = {run.folder: _counted(run) for run in self.runs if run.finished}
        lines = tuple(self._line(line, counts) for line in self.lines)
        return Results(
            self._experiment,
            self._options,
            lines,
            differences(self._experiment, lines, self._compare),
            notes=(*self._notes(counts), *_model_notes(self.lines)),
            below=tuple(cases(self.lines)) if self._experiment.kind == "cases" else (),
        )

    def _means(self, run: Measurement) -> Center:
        """Means to compute: this row's or, if it has none, another row's of the same scorer."""
        if run.center != "none":
            return run.center
        return self._centered.get(run.terms("none"), "none")

    def _terms(self, run: Measurement) -> Path:
        """Compute the terms that are missing, the cost said first; return their folder."""
        task, label = run.gold.task, f"origin on {run.gold.label}"
        # Terms with means also serve scores without them.
        for center in get_args(Center):
            folder = run.terms(center)
            if run.center in ("none", center) and not missing_pairs(folder, len(task)):
                return folder
        folder = run.terms(self._means(run))
        with self._maker.own(folder):
            if left := missing_pairs(folder, len(task)):
                scorer = self._origin(run)
                todo = {*task.sentences1[-left:], *task.sentences2[-left:]}
                cost = scorer.cost(sentences=len(todo), pairs=left)
                _LOGGER.info("%s, to be done: %s", label, cost)
                write_blocks(folder, scorer, task, progress=partial(self._progress, label))
        return folder

    def _origin(self, run: Measurement) -> OriginScorer:
        """The origin model, the last one kept open."""
        folder = run.terms(self._means(run))
        if self._opened is None or self._opened[0] != folder:
            scoring = run.recipe.scoring.replaced(center=self._means(run))
            recipe = run.recipe.replaced(scoring=scoring)
            opened = ContextsRun(run.part_folder, recipe, progress=self._progress)
            self._opened = (folder, opened.scorer)
        return self._opened[1]

    def _part_counts(self, run: Measurement) -> Counts:
        """Counts of the parts."""
        counts: Counts = {}
        if run.part is not None:
            tokens = counts_of("corpus", self._options.runs, run.recipe).get("tokens")
            counts |= {"corpus_tokens": tokens} if tokens else {}
        if run.part == "surrogate":
            counts |= counts_of("surrogate", self._options.runs, run.recipe)
        return counts

    def _line(self, line: ContextsLine, counts: Mapping[Path, Counts]) -> Line:
        run, reports = line.measurement, {}
        if run is not None:
            done = run.folder in counts
            reports[_SEED] = Report.from_json(run.report).model.metrics if done else None
        made = line_of(self._experiment, line.row, TEST_SETS[line.gold], reports)
        if run is None or run.folder not in counts:
            return made
        own, head = counts[run.folder], self._experiment.x
        on_axis = own.get(
            {"tokens": "corpus_tokens", "pairs": "training_pairs"}.get(head or "", "")
        )
        # The counted value is on the axis, in the place of the expected one.
        cells = {**made.cells, head: _short(on_axis)} if head and on_axis else made.cells
        return dataclasses.replace(made, cells=cells, counts=own)

    def _compare(self, first: Line, second: Line) -> Iterator[Difference]:
        """The difference of two rows with a paired bootstrap interval."""
        runs = {(line.row.key, line.gold): line.measurement for line in self.lines}
        one, other = (runs[line.row.key, line.column.key] for line in (first, second))
        if one is None or other is None or not (one.finished and other.finished):
            return
        report = evaluate(
            Scores(first.row.key, one.scores()),
            one.gold.task,
            against=Scores(second.row.key, other.scores()),
        )
        for metric in self._experiment.metrics:
            found = report.comparison[metric]
            yield Difference(
                row=first.row,
                minus=second.row,
                column=first.column,
                metric=metric,
                interval=Interval(found.value, found.low, found.high),
                ratio=None,
                seeds=1,
                bootstrap=True,
            )

    def _notes(self, counts: Mapping[Path, Counts]) -> Iterator[str]:
        """Sources of the numbers."""
        for gold in {run.gold.key: run.gold for run in self.runs}.values():
            drawn = "" if gold.rows is None else ", drawn with seed 0"
            yield (
                f"{gold.label}: {gold.source} (revision {gold.task.revision}), "
                f"{len(gold.task):,} pairs{drawn}."
            )
        recipes = {run.recipe.name: run.recipe for run in reversed(self.runs)}
        for name in dict.fromkeys(run.recipe.name for run in self.runs):
            scoring, chosen = recipes[name].scoring, recipes[name].selection
            weights = ", ".join(f"{value:g}" for value in scoring.weights.values)
            yield (
                f"Recipe `{name}`{_TUNED.get(name, '')}; no label was seen by any model. Where no "
                "row says otherwise: λ of coherence, center, left and right "
                f"{weights}; centering `{scoring.center}`; |C_s| = {chosen.size}, chosen from "
                f"{round(chosen.candidates * chosen.size)} in {chosen.chunks} chunks."
            )
        for name, text in _COUNT_NOTES.items():
            numbers = sorted({round(count[name]) for count in counts.values() if count.get(name)})
            if numbers:
                yield text.format(", ".join(f"{number:,}" for number in numbers))
        if self._options.overrides and self.runs:
            changed = ", ".join(f"`{text}`" for text in self._options.overrides)
            yield f"Changed in every recipe: {changed}."


def _counted(run: Measurement) -> Counts:
    stored: Counts = json.loads((run.folder / _COUNTS).read_text(encoding="utf-8"))
    return {name: number for name, number in stored.items() if number is not None}


def _short(number: float) -> str:
    """Such as ``7.62M`` or ``980``."""
    for suffix, unit in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if number >= unit:
            return f"{number / unit:.3g}{suffix}"
    return f"{number:g}"


def _origin_scores(run: Measurement, terms: Path) -> tuple[FloatArray, Counts]:
    """Cosines of Eq. 4 from stored terms."""
    scores: list[float] = []
    contexts = lost = 0
    rows = len(run.gold.task)
    for block in stored_blocks(terms, rows):
        for pair in block.pairs:
            scores.append(similarity(pair, weights=run.weights, center=run.center))
            contexts += len(next(iter(pair.first.values())))
        lost += block.without_contexts
    counts: Counts = {"pairs": rows, "contexts": contexts / rows, "without_contexts": lost}
    return np.array(scores, np.float32), counts


def _scorer(run: Measurement) -> Scorer:
    if run.how.scorer == "surrogate":
        return load_scorer(run.part_folder / SURROGATE)
    if run.how.scorer == "tfidf-cosine":
        return CorpusTfIdfScorer(Corpus(run.part_folder / CORPUS))
    return WordOverlapScorer()


def _write(run: Measurement, report: Report, scores: FloatArray, counts: Counts) -> None:
    """Write what was found, the report last."""
    run.folder.mkdir(parents=True, exist_ok=True)
    with replacing(run.scores_file) as partial_file, partial_file.open("wb") as stream:
        np.save(stream, scores)
    write_text(run.folder / _COUNTS, json.dumps(counts))
    report.to_json(run.report)


def _model_notes(lines: Sequence[ContextsLine]) -> list[str]:
    """Results of coherence models and generators on held-out documents, and the rows behind."""
    rows: dict[str, dict[str, None]] = {}
    for stage, read in (
        (COHERENCE, partial(read_report, CoherenceReport)),
        (GENERATORS, GeneratorReport.read),
    ):
        for line in lines:
            run = line.measurement
            if run is not None and run.finished and (run.part_folder / stage / REPORT).is_file():
                label = ", ".join(filter(None, line.row.cells.values()))
                rows.setdefault(read(run.part_folder / stage).summary(), {})[label] = None
    return [f"{summary}; behind {' / '.join(labels)}" for summary, labels in rows.items()]
