"""Scores and bootstrap draws of the suite, computed or found where they were kept."""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from condsim.errors import MissingExtraError
from condsim.evaluation.statistics import Aggregation
from condsim.evaluation.suite.cache import rows_digest
from condsim.evaluation.suite.data import SuiteTask
from condsim.evaluation.suite.figures import figure_draws
from condsim.evaluation.suite.scores import LEARNT, learnt_scores, score_tasks
from condsim.kept import Kept, KeptArrays
from condsim.scorers import UNFITTED_BASELINES, EncoderScorer, Numbers, Precision, baseline
from condsim.types import FloatArray, Scorer

Float64Array = NDArray[np.float64]

Stage = Callable[[str, int, int], None]
"""Is told of a stage, what is done of it and what there is (0 where nobody knows)."""

_LIBRARIES = ("numpy", "onnxruntime", "scikit-learn", "torch", "transformers", "bert-score")
_MODULES = {"scikit-learn": "sklearn", "bert-score": "bert_score"}
_LOGGER = logging.getLogger("condsim")


@runtime_checkable
class Unopened(Protocol):
    """A scorer by name that is not loaded yet, such as `condsim.loading.NamedScorer`."""

    @property
    def name(self) -> str:
        """Name in tables."""

    def open(self) -> Scorer:
        """Loads it."""

    def revision(self) -> str | None:
        """Its version, told without loading it; None where that cannot be told."""


@dataclass
class Entrant:
    """A scorer that has scored.

    Attributes:
        name: Name in tables.
        baseline: Whether it is one of the baselines that are always there.
        revision: Version of the model, if it can be told.
        scores: Raw similarities by key of the data set, ``(n,)`` each.
        seconds: What loading and scoring took; None if all was kept from before.
        versions: Versions of the libraries that scored.
        numbers: The number format that an encoder of sentence-transformers scored in; None for
            other scorers.
    """

    name: str
    baseline: bool
    revision: str | None
    scores: dict[str, FloatArray]
    seconds: float | None
    versions: Mapping[str, str]
    numbers: Numbers | None = None


class SuiteWork:
    """Scores and draws of scorers on the data sets of a suite."""

    def __init__(
        self,
        tasks: Sequence[SuiteTask],
        store: KeptArrays,
        condition: str | None,
        seed: int,
        report: Stage,
        precision: Precision = "float32",
    ) -> None:
        self._precision: Precision = precision
        self._tasks = {task.key: task for task in tasks}
        self._digests = {task.key: rows_digest(task.task) for task in tasks}
        self._store, self._condition, self._seed, self._report = store, condition, seed, report

    def baselines(self) -> list[Entrant]:
        """Scores with the baselines that cost nothing, as far as their libraries are installed."""
        found = []
        for name in UNFITTED_BASELINES:
            try:
                entrant = self.scored(name, baseline(name), revision=name)
            except MissingExtraError as error:
                _LOGGER.warning("%s is left out: %s", name, error)
                continue
            entrant.baseline = True
            found.append(entrant)
        with_conditions = [
            task for task in self._tasks.values() if task.task.conditions is not None
        ]
        if with_conditions:
            found += [self._learnt(name, with_conditions) for name in LEARNT]
        return found

    def scored(
        self, name: str, scorer: Unopened | Scorer, *, revision: str | None = None
    ) -> Entrant:
        """Scores every data set; the scorer is opened only for what has not been kept."""
        revision = revision or _revision(scorer)
        keys = {key: self._key(key, revision) for key in self._tasks}
        kept = {
            key: found
            for key in keys
            if revision is not None and (found := self._store.get(keys[key])) is not None
        }
        missing = {key: task.task for key, task in self._tasks.items() if key not in kept}
        scores = {key: found.values for key, found in kept.items()}
        facts = next((found.facts for found in kept.values()), {})
        if not missing:
            return _entrant(name, revision, scores, None, facts)
        started = time.monotonic()
        self._report(f"{name}: loading", 0, 0)
        opened = scorer.open() if isinstance(scorer, Unopened) else scorer
        if isinstance(opened, EncoderScorer):
            opened = opened.with_precision(self._precision)
        fresh = score_tasks(
            opened,
            missing,
            condition=self._condition,
            progress=lambda done, total: self._report(name, done, total),
        )
        seconds = time.monotonic() - started
        facts = {"versions": _versions(), "numbers": getattr(opened, "numbers", None)}
        revision = revision or _revision(scorer)  # a model of the Hub has one once it is here
        if revision is not None:
            for key, values in fresh.items():
                self._store.put(self._key(key, revision), Kept(values, facts))
        return _entrant(name, revision, scores | fresh, seconds, facts)

    def draws(
        self, entrants: Sequence[Entrant], task: SuiteTask, *, how: Aggregation, resamples: int
    ) -> dict[str, Float64Array]:
        """Resamples a data set for all scorers that have scored it.

        Returns:
            By name of the scorer its figures, ``(figures, resamples)``.
        """
        there = [entrant for entrant in entrants if task.key in entrant.scores]
        gold = hashlib.sha256(task.task.gold.tobytes()).hexdigest()
        keys: dict[str, dict[str, object]] = {
            entrant.name: {
                "draws": hashlib.sha256(entrant.scores[task.key].tobytes()).hexdigest(),
                "rows": self._digests[task.key],
                "gold": gold,
                "subsets": task.subsets,
                "how": how,
                "resamples": resamples,
                "seed": self._seed,
            }
            for entrant in there
        }
        kept = {name: self._store.get(key) for name, key in keys.items()}
        found = {name: one.values for name, one in kept.items() if one is not None}
        missing = [entrant for entrant in there if entrant.name not in found]
        if missing:
            self._report(f"bootstrap of {task.title}", 0, 0)
            drawn = figure_draws(
                [entrant.scores[task.key] for entrant in missing],
                task,
                how=how,
                resamples=resamples,
                seed=self._seed,
            )
            for entrant, values in zip(missing, drawn, strict=True):
                found[entrant.name] = values
                self._store.put(keys[entrant.name], Kept(values, {}))
        return found

    def _learnt(self, name: str, tasks: Sequence[SuiteTask]) -> Entrant:
        scores: dict[str, FloatArray] = {}
        for task in tasks:
            key: dict[str, object] = {
                "baseline": name,
                "rows": self._digests[task.key],
                "train": rows_digest(task.train or task.task, labels=True),
                "seed": self._seed,
            }
            kept = self._store.get(key)
            if kept is None:
                self._report(f"{name} on {task.title}", 0, 0)
                values = learnt_scores(name, task.task, train=task.train, seed=self._seed)
                kept = Kept(values, {})
                self._store.put(key, kept)
            scores[task.key] = kept.values
        return Entrant(name, True, None, scores, None, {})

    def _key(self, key: str, revision: str | None) -> dict[str, object]:
        has_own = self._tasks[key].task.conditions is not None
        found: dict[str, object] = {
            "scores": revision,
            "rows": self._digests[key],
            "condition": None if has_own else self._condition,
        }
        if self._precision != "float32":
            found["precision"] = self._precision
        return found


def _entrant(
    name: str,
    revision: str | None,
    scores: dict[str, FloatArray],
    seconds: float | None,
    facts: Mapping[str, Any],
) -> Entrant:
    versions, numbers = facts.get("versions", {}), facts.get("numbers")
    return Entrant(name, False, revision, scores, seconds, versions, numbers)


def _revision(scorer: Unopened | Scorer) -> str | None:
    if isinstance(scorer, Unopened):
        return scorer.revision()
    found = getattr(scorer, "revision", None)
    return f"{scorer.name}:{found}" if isinstance(found, str) else None


def _versions() -> dict[str, str]:
    """Versions of the libraries that are loaded."""
    return {
        library: metadata.version(library)
        for library in _LIBRARIES
        if _MODULES.get(library, library) in sys.modules
    }
