"""The four terms of Eq. 3 from the trained models, and their means over reference sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from condsim.contexts.coherence import CoherenceScorer
from condsim.contexts.corpus import Corpus
from condsim.contexts.generator import GeneratorScorer
from condsim.contexts.settings import GENERATOR_TASKS
from condsim.errors import InputError
from condsim.types import BoolArray, FloatArray, IntArray

Model = TypeVar("Model")


class TermScorer(Protocol):
    """What computes terms of Eq. 3, such as `ContextTerms`."""

    def terms(
        self, sentences: Sequence[str], centres: Sequence[IntArray], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Computes terms; see `ContextTerms.terms`."""


class ContextTerms:
    """Computes terms of Eq. 3 with trained models."""

    def __init__(
        self, coherence: CoherenceScorer | None, generators: GeneratorScorer | None
    ) -> None:
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
        """Computes terms.

        Args:
            sentences: Sentences, length m.
            centres: The contexts of each, m arrays of any length.

        Returns:
            For each sentence the terms by name, each of the length of its contexts. NaN where a
            context has no left or no right side.

        Raises:
            InputError: If a term needs a model that is not there.
        """
        found: list[dict[str, FloatArray]] = [{} for _ in sentences]
        if "coherence" in names:
            coherence = _needed(self._coherence, "coherence")
            vectors = coherence.encode(sentences)
            for terms, vector, one in zip(found, vectors, centres, strict=True):
                terms["coherence"] = coherence.log_probability(vector[None], one)[0]
        tasks = tuple(task for task in GENERATOR_TASKS if task in names)
        if tasks:
            generators = _needed(self._generators, tasks[0])
            for task, scores in generators.scores(tasks, sentences, centres).items():
                for terms, values in zip(found, scores, strict=True):
                    terms[task] = values
        return found


def _needed(model: Model | None, term: str) -> Model:
    if model is None:
        raise InputError(
            f"The term {term!r} of Eq. 3 needs a model that was not trained here. Train it, or "
            "give the term the weight 0."
        )
    return model


class ContextMeans:
    """The mean terms of contexts over a few sentences of the corpus, each computed once."""

    def __init__(self, corpus: Corpus, terms: TermScorer, references: int, *, seed: int) -> None:
        size = min(references, len(corpus))
        drawn = np.random.default_rng(seed).choice(len(corpus), size=size, replace=False)
        self._sentences = corpus.sentences(np.sort(drawn).astype(np.int64))
        self._terms = terms
        self._known: dict[str, FloatArray] = {}  # by term, each (n,)
        self._done: BoolArray = np.zeros(len(corpus), np.bool_)

    def of(self, groups: Sequence[IntArray], names: Sequence[str]) -> list[dict[str, FloatArray]]:
        """The means of groups of contexts by term; the terms must be the same at every call."""
        if not names:
            return [{} for _ in groups]
        every = np.unique(np.concatenate(groups))
        missing = every[~self._done[every]]
        if len(missing):
            found = self._terms.terms(self._sentences, [missing] * len(self._sentences), names)
            for name in names:
                means = self._known.setdefault(name, np.zeros(len(self._done), np.float32))
                means[missing] = np.mean([terms[name] for terms in found], axis=0)
            self._done[missing] = True
        return [{name: self._known[name][group] for name in names} for group in groups]
