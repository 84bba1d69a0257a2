"""The four terms of Eq. 3 from the trained models: coherence and the three generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.generator import TASKS, Task3
from condsim.errors import InputError
from condsim.types import FloatArray, IntArray

Model = TypeVar("Model")


class Coherence(Protocol):
    """What `condsim.contexts.coherence.model.CoherenceScorer` does."""

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Sentence vectors, ``(m, d)``."""

    def log_probability(self, vectors: FloatArray, centres: IntArray) -> FloatArray:
        """Log p(y=1) of each sentence in each context, ``(m, k)``."""


class Generators(Protocol):
    """What `condsim.contexts.generator.scorer.GeneratorScorer` does."""

    def scores_of_tasks(
        self,
        tasks: Sequence[Task3],
        sentences: Sequence[str],
        centres: Sequence[NDArray[np.int64]],
    ) -> dict[Task3, list[FloatArray]]:
        """Log-probability per target token of each sentence in each of its contexts, by task."""


class ContextTerms:
    """Computes terms of Eq. 3 with trained models."""

    def __init__(self, coherence: Coherence | None, generators: Generators | None) -> None:
        """Takes the models.

        Args:
            coherence: For the term ``coherence``; may be None if that is never asked for.
            generators: For the other terms; likewise.
        """
        self._coherence = coherence
        self._generators = generators

    def terms(
        self, sentences: Sequence[str], centres: Sequence[IntArray], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Computes terms; see `condsim.contexts.scoring.selection.TermScorer`.

        Args:
            sentences: Sentences, length m.
            centres: The contexts of each, m arrays of any length.
            names: Which terms.

        Returns:
            For each sentence the terms by name, each of the length of its contexts. NaN where a
            context has no left or no right side.

        Raises:
            InputError: If a term needs a model that is not there.
        """
        found: list[dict[str, FloatArray]] = [{} for _ in sentences]
        if "coherence" in names:
            _add(found, "coherence", self._coherences(sentences, centres))
        tasks = tuple(task for task in TASKS if task in names)
        if tasks:
            generators = _needed(self._generators, tasks[0])
            for task, values in generators.scores_of_tasks(tasks, sentences, centres).items():
                _add(found, task, values)
        return found

    def _coherences(
        self, sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> Sequence[FloatArray]:
        coherence = _needed(self._coherence, "coherence")
        vectors = coherence.encode(sentences)
        return [
            coherence.log_probability(vector[None], one)[0]
            for vector, one in zip(vectors, centres, strict=True)
        ]


def _add(found: list[dict[str, FloatArray]], name: str, values: Sequence[FloatArray]) -> None:
    for terms, value in zip(found, values, strict=True):
        terms[name] = value


def _needed(model: Model | None, term: str) -> Model:
    if model is None:
        raise InputError(
            f"The term {term!r} of Eq. 3 needs a model that was not trained here. Train it, or "
            "give the term the weight 0."
        )
    return model
