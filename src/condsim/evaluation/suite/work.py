"""Scores and bootstrap draws of the suite, computed or found where they were kept."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from condsim.errors import MissingExtraError
from condsim.evaluation.report import loaded_versions
from condsim.evaluation.statistics import Aggregation
from condsim.evaluation.suite.folder import SuiteTask
from condsim.evaluation.suite.scores import (
    LEARNT,
    learnt_scores,
    metric_draws,
    metric_names,
    score_tasks,
)
from condsim.kept import Kept, KeptArrays, digest
from condsim.progress import Progress
from condsim.scorers import baseline
from condsim.types import FloatArray, Scorer, Task

if TYPE_CHECKING:
    from condsim.scorers import Precision

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
    revision: str | None
    scores: dict[str, FloatArray]  # raw similarities by key of the data set, ``(n,)`` each
    seconds: float | None = None  # None if all was kept from before
    facts: Mapping[str, Any] = field(default_factory=dict)  # versions of libraries, and numbers
    baseline: bool = False


@dataclass(frozen=True)
class SuiteWork:
    """Scores and draws of scorers on the data sets of a suite.

    Keys of the store are made of the version of the model, the texts and the options, so what is
    found is what would be computed.
    """

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
            opened = with_precision(self.precision)
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
            }
            kept = self.store.get(key)
            if kept is None:
                self.progress(f"{name} on {task.title}", 0, 0)
                values = learnt_scores(name, task.task, train=task.train, seed=self.seed)
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
