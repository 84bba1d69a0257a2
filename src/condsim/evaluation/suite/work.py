"""Scores and bootstrap draws of the suite, computed or found where they were kept."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from condsim.errors import MissingExtraError
from condsim.evaluation.report import loaded_versions
from condsim.evaluation.statistics import Aggregation
from condsim.evaluation.suite.data import SuiteTask
from condsim.evaluation.suite.scores import LEARNT, learnt_scores, metric_draws, score_tasks
from condsim.kept import Kept, KeptArrays, digest
from condsim.progress import Progress
from condsim.scorers import UNFITTED_BASELINES, baseline
from condsim.types import FloatArray, Scorer, Task

if TYPE_CHECKING:
    from condsim.scorers import Numbers, Precision

Float64Array = NDArray[np.float64]

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
    baseline: bool
    revision: str | None
    scores: dict[str, FloatArray]  # raw similarities by key of the data set, ``(n,)`` each
    seconds: float | None  # None if all was kept from before
    versions: Mapping[str, str]
    numbers: Numbers | None = None


class SuiteWork:
    """Scores and draws of scorers on the data sets of a suite.

    Keys of the store are made of the version of the model, the texts and the options, so what is
    found is what would be computed.
    """

    def __init__(
        self,
        tasks: Sequence[SuiteTask],
        store: KeptArrays,
        *,
        condition: str | None,
        seed: int,
        progress: Progress,
        precision: Precision,
    ) -> None:
        self._tasks = {task.key: task for task in tasks}
        self._digests = {task.key: _rows_digest(task.task) for task in tasks}
        self._store, self._condition, self._seed = store, condition, seed
        self._progress, self._precision = progress, precision

    def baselines(self) -> list[Entrant]:
        """Scores with the baselines that are always there, if their libraries are installed."""
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
        self._progress(f"{name}: loading", 0, 0)
        opened = scorer.open() if isinstance(scorer, Unopened) else scorer
        if (with_precision := getattr(opened, "with_precision", None)) is not None:
            opened = with_precision(self._precision)
        fresh = score_tasks(
            opened,
            missing,
            condition=self._condition,
            progress=lambda done, total: self._progress(name, done, total),
        )
        seconds = time.monotonic() - started
        versions = loaded_versions(*_LIBRARIES, modules=_MODULES)
        facts = {"versions": versions, "numbers": getattr(opened, "numbers", None)}
        revision = revision or _revision(scorer)  # a model of the Hub has one once it is here
        if revision is not None:
            for key, values in fresh.items():
                self._store.put(self._key(key, revision), Kept(values, facts))
        return _entrant(name, revision, scores | fresh, seconds, facts)

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
            "seed": self._seed,
        }
        scores = {one.name: one.scores[task.key] for one in entrants if task.key in one.scores}
        keys: dict[str, dict[str, object]] = {
            name: {"draws": hashlib.sha256(values.tobytes()).hexdigest(), **common}
            for name, values in scores.items()
        }
        kept = {name: self._store.get(key) for name, key in keys.items()}
        found = {name: one.values for name, one in kept.items() if one is not None}
        missing = [name for name in scores if name not in found]
        if missing:
            self._progress(f"bootstrap of {task.title}", 0, 0)
            drawn = metric_draws(
                [scores[name] for name in missing],
                task,
                how=how,
                resamples=resamples,
                seed=self._seed,
            )
            for name, values in zip(missing, drawn, strict=True):
                found[name] = values
                self._store.put(keys[name], Kept(values, {}))
        return found

    def _learnt(self, name: str, tasks: Sequence[SuiteTask]) -> Entrant:
        scores: dict[str, FloatArray] = {}
        for task in tasks:
            key: dict[str, object] = {
                "baseline": name,
                "rows": self._digests[task.key],
                "train": _rows_digest(task.train or task.task, labels=True),
                "seed": self._seed,
            }
            kept = self._store.get(key)
            if kept is None:
                self._progress(f"{name} on {task.title}", 0, 0)
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
