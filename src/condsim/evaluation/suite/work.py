"""Scores and bootstrap draws of the suite, computed or found where they were kept."""

# STS-B is made of STS 2012-2017 and captions return from year to year, so sentences are in several
# pairs; sorted by length over all sets, they leave hardly any padding in a batch.

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from condsim.cache import Kept, KeptArrays, digest
from condsim.console import Progress
from condsim.data.statistics import pair_rows
from condsim.errors import InputError, MissingExtraError
from condsim.evaluation.bootstrap import bootstrap
from condsim.evaluation.correlation import Aggregation
from condsim.evaluation.evaluate import check_scores, score_rows
from condsim.evaluation.metrics import Metrics, triplet_wins
from condsim.evaluation.report import loaded_versions
from condsim.evaluation.suite.sets import SuiteTask
from condsim.model.baselines import baseline, out_of_fold
from condsim.model.embedding import EmbeddingScorer
from condsim.types import Float64Array, FloatArray, IntArray, Scorer, Task

if TYPE_CHECKING:
    from condsim.model.torch import Precision

_CORRELATIONS = ("spearman", "pearson")
_CONDITIONAL = ("spearman", "pair_accuracy")


def metric_names(task: SuiteTask) -> tuple[str, ...]:
    """The metrics of a data set, the one in tables first."""
    if task.triplets:
        return ("accuracy",)
    return _CORRELATIONS if task.group is None else _CONDITIONAL


def metric_values(scores: FloatArray, task: SuiteTask, *, how: Aggregation) -> Float64Array:
    """Computes the metrics of a data set, x 100, from raw similarities ``(n,)``; ``(metrics,)``."""
    if task.triplets:
        return np.array([100 * triplet_wins(scores).mean()])
    parts, weights = _parts(task, how)
    each = [_statistic([scores], task, part)[0].point()[0] for part in parts]
    return np.asarray(np.average(each, axis=0, weights=weights))


def undefined_metrics(task: SuiteTask, *, how: Aggregation) -> tuple[str, ...]:
    """The metrics that no scorer has on a data set, as no labels differ that they compare."""
    best = metric_values(task.task.gold, task, how=how)
    return tuple(name for name, one in zip(metric_names(task), best, strict=True) if np.isnan(one))


def metric_draws(
    scores: Sequence[FloatArray], task: SuiteTask, *, how: Aggregation, resamples: int, seed: int
) -> Float64Array:
    """Computes the metrics of scorers on the same resamples, ``(scorers, metrics, resamples)``."""
    if task.triplets:
        right = np.stack([triplet_wins(values) for values in scores])  # (scorers, triplets)
        return 100 * bootstrap(
            lambda weights: (right @ weights.T / right.shape[1])[:, None],
            np.arange(right.shape[1]),
            resamples=resamples,
            seed=seed,
        )
    # Pairs are drawn with all their rows; for a mean of the subsets each is drawn on its own.
    parts, weights = _parts(task, how)
    drawn = [
        bootstrap(*_statistic(scores, task, part), resamples=resamples, seed=seed + number)
        for number, part in enumerate(parts)
    ]
    return np.asarray(np.average(drawn, axis=0, weights=weights))


def _parts(task: SuiteTask, how: Aggregation) -> tuple[list[slice], list[int] | None]:
    """The rows that are measured together, and the weights in the mean of several such parts."""
    parts = [slice(0, len(task.task))] if how == "all" else task.bounds()
    return parts, [part.stop - part.start for part in parts] if how == "wmean" else None


def _statistic(
    scores: Sequence[FloatArray], task: SuiteTask, part: slice
) -> tuple[Metrics, IntArray]:
    """Metrics of some rows of a data set for the bootstrap, and the sentence pair of each row."""
    rows = task.task.take(np.arange(part.start, part.stop))
    pairing = pair_rows(rows)
    metrics = Metrics(
        [np.asarray(values[part], np.float64) for values in scores],
        gold=rows.gold.astype(np.float64),
        high=pairing.high,
        low=pairing.low,
        names=metric_names(task),
    )
    return metrics, pairing.pair_ids


LEARNT = ("condition-only", "sentences-only")
"""Baselines that learn from labels; they are for data with conditions."""

_Progress = Callable[[int, int], None]  # what is done and what there is

_BLOCK = 2048  # sentences between two reports of progress


def score_tasks(
    scorer: Scorer, tasks: Mapping[str, Task], *, condition: str | None, progress: _Progress
) -> dict[str, FloatArray]:
    """Raw similarities of every row of every task, ``(n,)`` for each key, finite."""
    if condition is not None:
        tasks = {
            key: replace(task, conditions=task.conditions or (condition,) * len(task))
            for key, task in tasks.items()
        }
    if isinstance(scorer, EmbeddingScorer):
        scores = _by_embedding(scorer, tasks, progress)
    else:
        scores = _by_row(scorer, tasks, progress)
    for key, found in scores.items():
        check_scores(f"{scorer.name} on {tasks[key].name}", found, len(tasks[key]))
    return scores


def _by_row(scorer: Scorer, tasks: Mapping[str, Task], report: _Progress) -> dict[str, FloatArray]:
    """Scores task by task: what a scorer makes of a row may depend on the others (TF-IDF)."""
    scores: dict[str, FloatArray] = {}
    done, total = 0, sum(map(len, tasks.values()))
    report(done, total)
    for key, task in tasks.items():
        try:
            found = score_rows(scorer, task)
        except InputError as error:
            raise InputError(f"{scorer.name} on {task.name}: {error}") from error
        scores[key] = np.asarray(found.raw, dtype=np.float32)
        done += len(task)
        report(done, total)
    return scores


def _by_embedding(
    scorer: EmbeddingScorer, tasks: Mapping[str, Task], report: _Progress
) -> dict[str, FloatArray]:
    """Encodes each distinct conditional sentence once; scores are cosines."""
    place: dict[tuple[str, str | None], int] = {}
    where = {key: _places(task, place) for key, task in tasks.items()}  # (2, n) for each
    texts = list(place)
    vectors = np.empty((len(texts), scorer.dimension), dtype=np.float32)
    done = 0
    report(done, len(texts))
    for rows in _blocks(texts):
        conditions = [texts[row][1] for row in rows]
        given = None if conditions[0] is None else [text or "" for text in conditions]
        try:
            vectors[rows] = scorer.encode([texts[row][0] for row in rows], given)
        except InputError as error:
            hint = "" if given else " A model that needs a condition is given one by --condition."
            raise InputError(f"{scorer.name}: {error}{hint}") from error
        done += len(rows)
        report(done, len(texts))
    return {
        key: np.clip(np.einsum("nd,nd->n", vectors[first], vectors[second]), -1, 1)
        for key, (first, second) in where.items()
    }


def _places(task: Task, place: dict[tuple[str, str | None], int]) -> IntArray:
    """Where the sentences of both columns are among the distinct ones, ``(2, n)``."""
    given = task.conditions if task.conditions is not None else [None] * len(task)
    return np.array(
        [
            [place.setdefault(text, len(place)) for text in zip(column, given, strict=True)]
            for column in (task.sentences1, task.sentences2)
        ],
        dtype=np.int64,
    )


def _blocks(texts: Sequence[tuple[str, str | None]]) -> list[IntArray]:
    """Cuts texts into blocks of similar length, those with a condition apart; the longest first."""
    lengths = np.array([len(text) + len(condition or "") for text, condition in texts])
    bare = np.array([condition is None for _, condition in texts], dtype=bool)
    blocks = []
    for group in (np.flatnonzero(bare), np.flatnonzero(~bare)):
        order = group[np.argsort(-lengths[group], kind="stable")]
        blocks += [order[start : start + _BLOCK] for start in range(0, len(order), _BLOCK)]
    return blocks


_LIBRARIES = ("numpy", "onnxruntime", "scikit-learn", "torch", "transformers", "bert-score")
_MODULES = {"scikit-learn": "sklearn", "bert-score": "bert_score"}
_LOGGER = logging.getLogger("condsim")


def default_cache() -> Path:
    """Where the command line keeps scores.

    Returns:
        ``condsim/suite`` in the user's folder for caches (``XDG_CACHE_HOME``).
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "condsim" / "suite"


def _rows_digest(task: Task, *, labels: bool = False) -> str:
    content: dict[str, object] = {
        "sentences1": task.sentences1,
        "sentences2": task.sentences2,
        "conditions": task.conditions,
    }
    if labels:
        content["labels"] = hashlib.sha256(task.gold.tobytes()).hexdigest()
    return digest(content)


@runtime_checkable
class Unopened(Protocol):
    """A scorer by name that is not loaded yet, such as `condsim.loading.NamedScorer`."""

    @property
    def name(self) -> str:
        """Name in tables."""

    def open(self) -> Scorer:
        """Loads it."""

    def revision(self) -> str | None:
        """Its version, found without loading it; None where it is unknown."""


@dataclass
class Entrant:
    """A scorer that has scored."""

    name: str
    revision: str | None
    scores: dict[str, FloatArray]  # raw similarities by key of the data set, ``(n,)`` each
    seconds: float | None = None  # None if all was kept from before
    facts: Mapping[str, Any] = field(default_factory=dict)  # versions of libraries, and numbers
    baseline: bool = False


@dataclass(frozen=True)
class SuiteWork:
    """Scores and draws of scorers on the data sets of a suite."""

    # Keys of the store are made of the version of the model, the texts and the options, so what is
    # found is what would be computed.

    tasks: Mapping[str, SuiteTask]
    store: KeptArrays
    condition: str | None
    seed: int
    progress: Progress
    precision: Precision

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {key: _rows_digest(task.task) for key, task in self.tasks.items()}

    def baselines(self, names: Sequence[str]) -> list[Entrant]:
        """Scores with baselines, if their libraries are installed; the learnt ones come last."""
        found = []
        for name in (name for name in names if name not in LEARNT):
            try:
                entrant = self.scored(name, baseline(name), revision=name)
            except MissingExtraError as error:
                _LOGGER.warning("%s is left out: %s", name, error)
                continue
            entrant.baseline = True
            found.append(entrant)
        if any(task.task.conditions is not None for task in self.tasks.values()):
            found += (self._learnt(name) for name in names if name in LEARNT)
        return found

    def scored(
        self, name: str, scorer: Unopened | Scorer, *, revision: str | None = None
    ) -> Entrant:
        """Scores every data set; the scorer is opened only for what has not been kept."""
        revision = revision or _revision(scorer)
        kept = {
            key: found
            for key in (self.tasks if revision is not None else ())
            if (found := self.store.get(self._key(key, revision))) is not None
        }
        missing = {key: task.task for key, task in self.tasks.items() if key not in kept}
        scores = {key: found.values for key, found in kept.items()}
        facts = next((found.facts for found in kept.values()), {})
        if not missing:
            return Entrant(name, revision, scores, facts=facts)
        started = time.monotonic()
        self.progress(f"{name}: loading", 0, 0)
        opened = scorer.open() if isinstance(scorer, Unopened) else scorer
        if (with_precision := getattr(opened, "with_precision", None)) is not None:
            begun = facts.get("numbers") if self.precision == "auto" else None
            opened = with_precision(begun or self.precision)  # a resumed run goes on as it began
        fresh = score_tasks(
            opened, missing, condition=self.condition, progress=partial(self.progress, name)
        )
        seconds = time.monotonic() - started
        versions = loaded_versions(*_LIBRARIES, modules=_MODULES)
        facts = {"versions": versions, "numbers": getattr(opened, "numbers", None)}
        revision = revision or _revision(scorer)  # a model of the Hub has one once it is here
        if revision is not None:
            for key, values in fresh.items():
                self.store.put(self._key(key, revision), Kept(values, facts))
        return Entrant(name, revision, scores | fresh, seconds, facts)

    def draws(
        self, entrants: Sequence[Entrant], task: SuiteTask, *, how: Aggregation, resamples: int
    ) -> dict[str, Float64Array]:
        """Metrics on resamples of a data set, ``(metrics, resamples)``, by name of the scorer."""
        common = {
            "rows": self._digests[task.key],
            "gold": hashlib.sha256(task.task.gold.tobytes()).hexdigest(),
            "subsets": task.subsets,
            "how": how,
            "resamples": resamples,
            "seed": self.seed,
            **({} if task.group is None else {"metrics": metric_names(task)}),
        }
        scores = {one.name: one.scores[task.key] for one in entrants if task.key in one.scores}
        keys: dict[str, dict[str, object]] = {
            name: {"draws": hashlib.sha256(values.tobytes()).hexdigest(), **common}
            for name, values in scores.items()
        }
        kept = ((name, self.store.get(key)) for name, key in keys.items())
        found = {name: one.values for name, one in kept if one is not None}
        missing = {name: values for name, values in scores.items() if name not in found}
        if missing:
            self.progress(f"bootstrap of {task.title}", 0, 0)
            drawn = metric_draws(
                list(missing.values()), task, how=how, resamples=resamples, seed=self.seed
            )
            for name, values in zip(missing, drawn, strict=True):
                found[name] = values
                self.store.put(keys[name], Kept(values, {}))
        return found

    def _learnt(self, name: str) -> Entrant:
        scores: dict[str, FloatArray] = {}
        for task in self.tasks.values():
            if task.task.conditions is None:
                continue
            key: dict[str, object] = {
                "baseline": name,
                "rows": self._digests[task.key],
                "train": _rows_digest(task.train or task.task, labels=True),
                "seed": self.seed,
                "pairs": "in either order",  # not what was kept when folds told the orders apart
            }
            kept = self.store.get(key)
            if kept is None:
                self.progress(f"{name} on {task.title}", 0, 0)
                rows = task.task
                if task.train is None:
                    values = out_of_fold(rows, name=name, seed=self.seed)
                else:
                    fitted = baseline(name, train=task.train)
                    values = fitted.score(rows.sentences1, rows.sentences2, rows.conditions)
                kept = Kept(values, {})
                self.store.put(key, kept)
            scores[task.key] = kept.values
        return Entrant(name, None, scores, baseline=True)

    def _key(self, key: str, revision: str | None) -> dict[str, object]:
        has_own = self.tasks[key].task.conditions is not None
        return {
            "scores": revision,
            "rows": self._digests[key],
            "condition": None if has_own else self.condition,
            **({} if self.precision == "float32" else {"precision": self.precision}),
        }


def _revision(scorer: Unopened | Scorer) -> str | None:
    if isinstance(scorer, Unopened):
        return scorer.revision()
    found = getattr(scorer, "revision", None)
    return f"{scorer.name}:{found}" if isinstance(found, str) else None
