"""Equations 3 and 4: how well contexts fit a sentence, and the cosine of two (SSBC §3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, TypeVar

import numpy as np
from pydantic import Field, model_validator

from condsim.config import Settings
from condsim.contexts.coherence.model import CoherenceScorer
from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.generator.scorer import GeneratorScorer
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


TERMS = ("coherence", "centre", "left", "right")
"""The terms in the order of Eq. 3: log p(y=1 | s, c), and the log-probability per token of the
sentence given the context, of its left side given the rest, and of its right side given the rest.
"""


class Weights(Settings):
    """λ1 to λ4 of Eq. 3; the paper does not give them, so all are 1 unless they are tuned."""

    what = "weights"

    coherence: float = 1.0  # λ1
    centre: float = 1.0  # λ2
    left: float = 1.0  # λ3
    right: float = 1.0  # λ4

    @model_validator(mode="after")
    def _leaves_a_term(self) -> Weights:
        if min(self.values) < 0 or max(self.values) == 0:
            raise InputError(
                "The weights of Eq. 3 must be at least 0 and one of them above 0. Got "
                f"{', '.join(f'{value:g}' for value in self.values)}."
            )
        return self

    @property
    def values(self) -> list[float]:
        """The weights in the order of `TERMS`."""
        return [getattr(self, name) for name in TERMS]

    @property
    def used(self) -> tuple[str, ...]:
        """The terms whose weight is not 0; the others need not be computed."""
        return tuple(name for name in TERMS if getattr(self, name) > 0)


def context_scores(terms: Mapping[str, FloatArray], weights: Weights) -> FloatArray:
    """Computes S(s, c) of Eq. 3 for each context, ``(k,)``; NaN for one that has no term.

    The weighted sum is divided by the sum of its weights, which changes no ranking and no cosine. A
    term that a context lacks, as one without a left side does, counts as the mean of the others':
    left out it would count as the mean of the context's own terms, of which coherence is by far the
    highest, and the edges of documents would come first.

    Args:
        terms: Log-probabilities by name, each ``(k,)``; NaN where a context has no such term. The
            terms of weight 0 may be missing.

    Examples:
        >>> terms = {"coherence": np.float32([-1.0]), "centre": np.float32([-3.0])}
        >>> context_scores(terms, Weights(left=0, right=0))
        array([-2.], dtype=float32)
    """
    values = np.stack([terms[name].astype(np.float64) for name in weights.used])  # (used, k)
    there = ~np.isnan(values)
    some = there.any(axis=1)  # terms that any of the contexts has
    if not some.any():
        return np.full(values.shape[1], np.nan, dtype=np.float32)
    shares = np.array([getattr(weights, name) for name in weights.used])[some]
    values, known = values[some], there[some]
    means = np.where(known, values, 0).sum(axis=1) / known.sum(axis=1)
    filled = np.where(known, values, means[:, None])
    scores = np.average(filled, axis=0, weights=shares)
    return np.where(known.any(axis=0), scores, np.nan).astype(np.float32)


Center = Literal["none", "context", "pmi"]
"""What is taken off the scores of Eq. 3 before their cosine.

``none``: nothing, as Eq. 4 is printed. Log-probabilities are all negative, so cosines crowd near 1,
and a sentence that every context leaves alike is near all others. ``context``: each context's mean
over reference sentences. ``pmi``: each term less what it is without the other side: log p(s | c)
less the sentence's mean over reference contexts, log p(c< | s, c>) less the context's mean over
reference sentences. What is left is near the pointwise mutual information of sentence and context,
which is 0 where they have nothing to do with each other.
"""


class ScoringSettings(Settings):
    """What decides the origin score (SSBC §3.3), and how fast it is computed."""

    what = "scoring"

    center: Center = "pmi"
    # Contexts that a sentence's mean is taken over, and sentences that a context's is.
    references: Annotated[int, Field(ge=1)] = 8
    weights: Weights = Weights()  # λ1 to λ4 of Eq. 3
    batch_size: Annotated[int, Field(ge=1)] = 64  # pairs scored together; no score depends on it
    memory_gb: Annotated[float, Field(ge=0)] = 2.0  # of encoder states kept; likewise


OF_SENTENCES = ("coherence", "centre")
"""The terms that are the probability of the sentence; the others are that of the context."""


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The terms of Eq. 3 for both sentences of a pair, in the contexts C_s1 and C_s2 together."""

    first: Mapping[str, FloatArray]  # terms of sentence 1 by name, each (k,)
    second: Mapping[str, FloatArray]  # terms of sentence 2, each (k,)
    # Means of the terms that the centring takes them off: of each context over the reference
    # sentences, each (k,), and of sentence 1 and sentence 2 over the reference contexts, each (2,).
    means: Mapping[str, FloatArray] = field(default_factory=dict)
    alone: Mapping[str, FloatArray] = field(default_factory=dict)


def similarity(pair: PairTerms, *, weights: Weights, center: Center) -> float:
    """Equation 4: the cosine of what the contexts say of two sentences.

    Args:
        weights: λ of Eq. 3.
        center: See `Center`.

    Returns:
        The cosine, in [-1, 1]; 0 where one of the vectors is 0 or there is no context.
    """
    sides = []
    for place, terms in enumerate((pair.first, pair.second)):
        used = {name: terms[name] for name in weights.used}
        for name, values in used.items():
            if center == "pmi" and name in OF_SENTENCES:
                used[name] = values - pair.alone[name][place]
            elif center != "none":
                used[name] = values - pair.means[name]
        sides.append(context_scores(used, weights).astype(np.float64))
    first, second = sides
    there = ~(np.isnan(first) | np.isnan(second))
    first, second = first[there], second[there]
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / length, -1.0, 1.0)) if length else 0.0
