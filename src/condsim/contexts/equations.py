"""Equations 3 and 4: how well contexts fit a sentence, and the cosine of two (SSBC §3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from condsim.contexts.corpus import Corpus
from condsim.contexts.recipe import GENERATOR_TASKS, Center, Weights
from condsim.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from condsim.contexts.coherence import CoherenceScorer
    from condsim.contexts.generator_scorer import GeneratorScorer

SENTENCE_TERMS = ("coherence", "centre")
"""The terms that are the probability of the sentence; the others are that of the context."""


class ContextTerms:
    """Terms of Eq. 3 from trained models; a model that no term needs may be None."""

    def __init__(
        self, coherence: CoherenceScorer | None, generators: GeneratorScorer | None
    ) -> None:
        self._coherence, self._generators = coherence, generators

    def terms(
        self, sentences: Sequence[str], centres: Sequence[IntArray], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Compute the named terms of each of m sentences in its own contexts.

        Returns for each sentence the terms by name, each of the length of its contexts; NaN where a
        context has no left or no right side.
        """
        results: list[dict[str, FloatArray]] = [{} for _ in sentences]
        if self._coherence is not None and "coherence" in names:
            vectors = self._coherence.encode(sentences)
            for terms, vector, contexts in zip(results, vectors, centres, strict=True):
                terms["coherence"] = self._coherence.log_probability(vector[None], contexts)[0]
        tasks = tuple(task for task in GENERATOR_TASKS if task in names)
        if self._generators is not None and tasks:
            for task, scores in self._generators.scores(tasks, sentences, centres).items():
                for terms, values in zip(results, scores, strict=True):
                    terms[task] = values
        return results


class ContextMeans:
    """The mean terms of contexts over a few sentences of the corpus, each computed once."""

    def __init__(self, corpus: Corpus, terms: ContextTerms, references: int, *, seed: int) -> None:
        size = min(references, len(corpus))
        rows = np.random.default_rng(seed).choice(len(corpus), size=size, replace=False)
        self._sentences = corpus.sentences(np.sort(rows).astype(np.int64))
        self._terms = terms
        # By term, each (n,), and which of the contexts are computed.
        self._means: dict[str, FloatArray] = {}
        self._done: BoolArray = np.zeros(len(corpus), np.bool_)

    def of(self, groups: Sequence[IntArray], names: Sequence[str]) -> list[dict[str, FloatArray]]:
        """Look up the means of groups of contexts by term; the same terms at every call."""
        if not names:
            return [{} for _ in groups]
        contexts = np.unique(np.concatenate(groups))
        missing = contexts[~self._done[contexts]]
        if len(missing):
            scores = self._terms.terms(self._sentences, [missing] * len(self._sentences), names)
            for name in names:
                means = self._means.setdefault(name, np.zeros(len(self._done), np.float32))
                means[missing] = np.mean([terms[name] for terms in scores], axis=0)
            self._done[missing] = True
        return [{name: self._means[name][group] for name in names} for group in groups]


def context_scores(terms: Mapping[str, FloatArray], weights: Weights) -> FloatArray:
    """Compute S(s, c) of Eq. 3 for each context, ``(k,)``; NaN for one that has no term.

    The weighted sum is divided by the sum of its weights, which changes no ranking and no cosine. A
    term that a context lacks, as one without a left side does, counts as the mean of the others':
    left out it would count as the mean of the context's own terms, of which coherence is by far the
    highest, and the edges of documents would come first. ``terms`` are log-probabilities by name,
    each ``(k,)``, NaN where a context lacks the term; those of weight 0 may be missing.

    Examples:
        >>> terms = {"coherence": np.float32([-1.0]), "centre": np.float32([-3.0])}
        >>> context_scores(terms, Weights(left=0, right=0))
        array([-2.], dtype=float32)
    """
    values = np.stack([terms[name].astype(np.float64) for name in weights.used])  # (used, k)
    present = ~np.isnan(values)
    # Terms that any of the contexts has.
    rows = present.any(axis=1)
    if not rows.any():
        return np.full(values.shape[1], np.nan, dtype=np.float32)
    shares = np.array([getattr(weights, name) for name in weights.used])[rows]
    values, present = values[rows], present[rows]
    means = np.where(present, values, 0).sum(axis=1) / present.sum(axis=1)
    filled = np.where(present, values, means[:, None])
    scores = np.average(filled, axis=0, weights=shares)
    return np.where(present.any(axis=0), scores, np.nan).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The terms of Eq. 3 for both sentences of a pair, in the contexts C_s1 and C_s2 together.

    ``first`` and ``second`` are the terms of the sentences by name, each ``(k,)``; ``means`` those
    of each context over the reference sentences, ``(k,)``; ``alone`` those of both sentences over
    the reference contexts, ``(2,)``. There are means for the terms that the centering changes.
    """

    first: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray]
    means: Mapping[str, FloatArray] = field(default_factory=dict)
    alone: Mapping[str, FloatArray] = field(default_factory=dict)


def similarity(pair: PairTerms, *, weights: Weights, center: Center) -> float:
    """Equation 4: the cosine, in [-1, 1], of the scores of two sentences in their contexts.

    It is 0 where one of the vectors is 0 or there is no context.
    """
    vectors = []
    for side, terms in enumerate((pair.first, pair.second)):
        centred = {name: terms[name] for name in weights.used}
        for name, values in centred.items():
            if center == "pmi" and name in SENTENCE_TERMS:
                centred[name] = values - pair.alone[name][side]
            elif center != "none":
                centred[name] = values - pair.means[name]
        vectors.append(context_scores(centred, weights).astype(np.float64))
    first, second = vectors
    valid = ~(np.isnan(first) | np.isnan(second))
    first, second = first[valid], second[valid]
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / length, -1.0, 1.0)) if length else 0.0
