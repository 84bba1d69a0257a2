"""Cached scores of a suite, each distinct sentence encoded once over all data sets.

STS-B is made of STS 2012-2017 and captions return from year to year, so sentences are in several
pairs; sorted by length over all sets, they leave hardly any padding in a batch.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.cache import digest
from condsim.console import Progress
from condsim.errors import InputError
from condsim.evaluation.evaluate import check_scores, score_rows
from condsim.evaluation.report import loaded_versions
from condsim.evaluation.suite import (
    LIBRARIES,
    MODULES,
    ScoredModel,
    SuiteScoring,
    SuiteSet,
    UnloadedScorer,
    scorer_revision,
)
from condsim.model.embedding import EmbeddingScorer
from condsim.types import Float64Array, FloatArray, IntArray, Scorer, Task
from papers.suite.arrays import ArrayCache, CachedArray
from papers.suite.data import StsSet

if TYPE_CHECKING:
    from condsim.model.torch import Precision

_Progress = Callable[[int, int], None]

# Sentences encoded between two reports of progress.
_SENTENCES_PER_BLOCK = 2048


def default_cache() -> Path:
    """Return the folder of cached scores: ``condsim/suite`` in the user's folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "condsim" / "suite"


class CachedScoring(SuiteScoring):
    """Compute scores and bootstrap draws, or finds them in a cache.

    Keys of the cache are made of the version of the model, the texts and the options, so a cached
    value is what would be computed. Scorers of unknown version are not cached.
    """

    def __init__(
        self,
        sets: Sequence[SuiteSet],
        *,
        seed: int,
        progress: Progress,
        cache: Path | None,
        condition: str | None,
        precision: Precision,
    ) -> None:
        """Take the folder of the cache, and the condition of pairs that have none."""
        super().__init__(sets, seed=seed, progress=progress)
        self._store = ArrayCache(cache)
        self._condition = condition
        self._precision = precision
        self._digests = {key: _rows_digest(item.task) for key, item in self.sets.items()}

    def score(self, scorer: UnloadedScorer | Scorer, *, revision: str | None = None) -> ScoredModel:
        """Score every data set; the scorer is loaded only if scores are missing."""
        name = scorer.name
        revision = revision or scorer_revision(scorer)
        cached = {}
        if revision is not None:
            for key in self.sets:
                if (kept := self._store.get(self._key(key, revision))) is not None:
                    cached[key] = kept
        scores = {key: kept.values for key, kept in cached.items()}
        facts = next((kept.facts for kept in cached.values()), {})
        tasks = {key: item.task for key, item in self.sets.items() if key not in cached}
        if not tasks:
            return ScoredModel(name, scores, revision=revision, facts=facts)
        started = time.monotonic()
        self.progress(f"{name}: loading", 0, 0)
        opened = scorer.open() if isinstance(scorer, UnloadedScorer) else scorer
        if (with_precision := getattr(opened, "with_precision", None)) is not None:
            # A resumed run keeps the number format of its first part.
            first_format = facts.get("numbers") if self._precision == "auto" else None
            opened = with_precision(first_format or self._precision)
        new_scores = score_tasks(
            opened, tasks, condition=self._condition, progress=partial(self.progress, name)
        )
        seconds = time.monotonic() - started
        versions = loaded_versions(*LIBRARIES, modules=MODULES)
        facts = {"versions": versions, "numbers": getattr(opened, "numbers", None)}
        # A model of the Hub has a version once it is downloaded.
        revision = revision or scorer_revision(scorer)
        if revision is not None:
            for key, values in new_scores.items():
                self._store.put(self._key(key, revision), CachedArray(values, facts))
        return ScoredModel(
            name, scores | new_scores, revision=revision, seconds=seconds, facts=facts
        )

    def draws(
        self, models: Sequence[ScoredModel], suite_set: SuiteSet, *, resamples: int
    ) -> dict[str, Float64Array]:
        """Compute the metrics on resamples, ``(metrics, b)``, by name of the scorer."""
        common = {
            "rows": self._digests[suite_set.key],
            "gold": hashlib.sha256(suite_set.task.gold.tobytes()).hexdigest(),
            "subsets": suite_set.subsets if isinstance(suite_set, StsSet) else (),
            "how": suite_set.aggregation if isinstance(suite_set, StsSet) else "all",
            "resamples": resamples,
            "seed": self.seed,
            "metrics": suite_set.metric_names,
        }
        keys: dict[str, dict[str, object]] = {}
        drawn: dict[str, Float64Array] = {}
        missing = []
        for model in models:
            if suite_set.key in model.scores:
                values = model.scores[suite_set.key]
                keys[model.name] = {"draws": hashlib.sha256(values.tobytes()).hexdigest(), **common}
                if (kept := self._store.get(keys[model.name])) is not None:
                    drawn[model.name] = kept.values
                else:
                    missing.append(model)
        if missing:
            new_draws = super().draws(missing, suite_set, resamples=resamples)
            for name, samples in new_draws.items():
                drawn[name] = samples
                self._store.put(keys[name], CachedArray(samples, {}))
        return drawn

    def score_fitted(self, name: str, suite_set: SuiteSet) -> FloatArray:
        """Fit a baseline, on training rows or out of fold, and score a data set."""
        key: dict[str, object] = {
            "baseline": name,
            "rows": self._digests[suite_set.key],
            "train": _rows_digest(suite_set.train or suite_set.task, labels=True),
            "seed": self.seed,
            # Earlier folds put the two orders of a pair into different folds.
            "pairs": "in either order",
        }
        kept = self._store.get(key)
        if kept is None:
            kept = CachedArray(super().score_fitted(name, suite_set), {})
            self._store.put(key, kept)
        return kept.values

    def _key(self, key: str, revision: str) -> dict[str, object]:
        has_conditions = self.sets[key].task.conditions is not None
        precision = {} if self._precision == "float32" else {"precision": self._precision}
        return {
            "scores": revision,
            "rows": self._digests[key],
            "condition": None if has_conditions else self._condition,
            **precision,
        }


def _rows_digest(task: Task, *, labels: bool = False) -> str:
    content: dict[str, object] = {
        "sentences1": task.sentences1,
        "sentences2": task.sentences2,
        "conditions": task.conditions,
    }
    if labels:
        content["labels"] = hashlib.sha256(task.gold.tobytes()).hexdigest()
    return digest(content)


def score_tasks(
    scorer: Scorer, tasks: Mapping[str, Task], *, condition: str | None, progress: _Progress
) -> dict[str, FloatArray]:
    """Compute raw similarities of every row of every task, ``(n,)`` for each key."""
    if condition is not None:
        tasks = {
            key: replace(task, conditions=task.conditions or (condition,) * len(task))
            for key, task in tasks.items()
        }
    if isinstance(scorer, EmbeddingScorer):
        scores = _score_by_embedding(scorer, tasks, progress)
    else:
        scores = _score_by_row(scorer, tasks, progress)
    for key, values in scores.items():
        check_scores(f"{scorer.name} on {tasks[key].name}", values, len(tasks[key]))
    return scores


def _score_by_row(
    scorer: Scorer, tasks: Mapping[str, Task], progress: _Progress
) -> dict[str, FloatArray]:
    """Score task by task: the score of a row may depend on the others (TF-IDF)."""
    scores: dict[str, FloatArray] = {}
    done, total = 0, sum(map(len, tasks.values()))
    progress(done, total)
    for key, task in tasks.items():
        try:
            raw = score_rows(scorer, task).raw
        except InputError as error:
            raise InputError(f"{scorer.name} on {task.name}: {error}") from error
        scores[key] = np.asarray(raw, dtype=np.float32)
        done += len(task)
        progress(done, total)
    return scores


def _score_by_embedding(
    scorer: EmbeddingScorer, tasks: Mapping[str, Task], progress: _Progress
) -> dict[str, FloatArray]:
    """Encode each distinct conditional sentence once; scores are cosines."""
    numbers: dict[tuple[str, str | None], int] = {}
    indices = {key: _number_sentences(task, numbers) for key, task in tasks.items()}
    texts = list(numbers)
    vectors = np.empty((len(texts), scorer.dimension), dtype=np.float32)
    done = 0
    progress(done, len(texts))
    for rows in _blocks(texts):
        conditions = [texts[row][1] for row in rows]
        row_conditions = None if conditions[0] is None else [text or "" for text in conditions]
        try:
            vectors[rows] = scorer.encode([texts[row][0] for row in rows], row_conditions)
        except InputError as error:
            hint = (
                ""
                if row_conditions
                else " A model that needs a condition is given one by --condition."
            )
            raise InputError(f"{scorer.name}: {error}{hint}") from error
        done += len(rows)
        progress(done, len(texts))
    return {
        key: np.clip(np.einsum("nd,nd->n", vectors[first], vectors[second]), -1, 1)
        for key, (first, second) in indices.items()
    }


def _number_sentences(task: Task, numbers: dict[tuple[str, str | None], int]) -> IntArray:
    """Number the distinct sentences; return those of both columns, ``(2, n)``."""
    conditions = task.conditions if task.conditions is not None else [None] * len(task)
    return np.array(
        [
            [
                numbers.setdefault(text, len(numbers))
                for text in zip(column, conditions, strict=True)
            ]
            for column in (task.sentences1, task.sentences2)
        ],
        dtype=np.int64,
    )


def _blocks(texts: Sequence[tuple[str, str | None]]) -> list[IntArray]:
    """Cut texts into blocks of similar length, those with a condition apart, longest first."""
    lengths = np.array([len(text) + len(condition or "") for text, condition in texts])
    without_condition = np.array([condition is None for _, condition in texts], dtype=bool)
    blocks = []
    for group in (np.flatnonzero(without_condition), np.flatnonzero(~without_condition)):
        order = group[np.argsort(-lengths[group], kind="stable")]
        for start in range(0, len(order), _SENTENCES_PER_BLOCK):
            blocks.append(order[start : start + _SENTENCES_PER_BLOCK])
    return blocks
