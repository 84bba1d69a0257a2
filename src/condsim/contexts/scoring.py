"""The origin score: two sentences are alike when the same contexts fit both (SSBC §3.3, Eq. 4)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, get_args, overload

import numpy as np

from condsim.contexts.cost import Cost, cost_of
from condsim.contexts.eq3 import Weights, fit
from condsim.contexts.selection import (
    ContextSet,
    Places,
    Retriever,
    Selection,
    TermScorer,
    select,
)
from condsim.errors import InputError, unknown_name
from condsim.scorers.calibration import Calibration
from condsim.scorers.inputs import Scale, Texts, check_rows, check_scale, rescaled
from condsim.types import FloatArray, IntArray

__all__ = ["Center", "OriginScorer", "PairTerms", "similarity"]

TOKENS = 25.0
"""Tokens of a target, about, for the cost that is said beforehand."""
TRIAL = 8
"""Sentences that are scored to time it."""

_LINEAR = Calibration(raw=(-1.0, 1.0), score=(0.0, 1.0))
_LOGGER = logging.getLogger("condsim.contexts")

Center = Literal["none", "context"]
"""``none``: Eq. 4 as it stands; the scores are log-probabilities, all negative, so cosines crowd
near 1. ``context``: each context's mean score over reference sentences is taken off first."""


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The terms of Eq. 3 for both sentences of a pair, in the contexts C_s1 and C_s2 together.

    Attributes:
        first: Terms of sentence 1 by name, each ``(k,)``.
        second: Terms of sentence 2, each ``(k,)``.
        means: Mean term of each context over the reference sentences, each ``(k,)``.
    """

    first: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray]
    means: Mapping[str, FloatArray]


def similarity(pair: PairTerms, *, weights: Weights, center: Center) -> float:
    """Equation 4: the cosine of what the contexts say of two sentences.

    Args:
        pair: The terms of a pair.
        weights: λ of Eq. 3.
        center: See `Center`.

    Returns:
        The cosine, in [-1, 1]; 0 where one of the vectors is 0 or there is no context.
    """
    sides = []
    for terms in (pair.first, pair.second):
        used = {name: terms[name] for name in weights.used}
        if center == "context":
            used = {name: values - pair.means[name] for name, values in used.items()}
        sides.append(fit(used, weights).astype(np.float64))
    first, second = sides
    there = ~(np.isnan(first) | np.isnan(second))
    first, second = first[there], second[there]
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / length, -1.0, 1.0)) if length else 0.0


class OriginScorer:
    """Scores pairs of sentences by the contexts of a corpus; no label was seen on the way.

    Attributes:
        name: Name of the scorer.
        revision: That of the corpus.
        calibration: From a cosine to [0, 1], a straight line: no label was seen.
        without_contexts: Sentences so far that shared no word with the corpus; they were given
            random contexts.
    """

    def __init__(
        self,
        corpus: Places,
        index: Retriever,
        terms: TermScorer,
        *,
        selection: Selection | None = None,
        weights: Weights | None = None,
        center: Center = "context",
        references: int = 8,
        batch_size: int = 64,
        name: str = "origin",
    ) -> None:
        """Prepares; nothing is computed.

        Args:
            corpus: The corpus.
            index: Its index.
            terms: Computes the terms of Eq. 3.
            selection: How context sets are made; the paper's by default.
            weights: λ of Eq. 3, for the choice of contexts and for the score; all 1 by default.
            center: See `Center`.
            references: Sentences of the corpus that a context's mean score is taken over.
            batch_size: Pairs scored together; encoder states are shared among them.
            name: Name of the scorer.

        Raises:
            InputError: If the centring is unknown or a number is below 1.
        """
        if center not in get_args(Center):
            raise unknown_name("centring", str(center), get_args(Center))
        for what, value in (("references", references), ("batch_size", batch_size)):
            if value < 1:
                raise InputError(f"'{what}' must be at least 1. Got {value}.")
        self.name = name
        self.revision = corpus.revision
        self.calibration = _LINEAR
        self.without_contexts = 0
        self._corpus, self._index, self._terms = corpus, index, terms
        self._selection = selection or Selection()
        self._weights = weights or Weights()
        self._center: Center = center
        self._batch_size = batch_size
        self._references = references
        self._rate: float | None = None
        self._means = _ContextMeans(corpus, terms, references, seed=self._selection.seed)

    @overload
    def score(  # type: ignore[overload-overlap]  # a str is a sequence of str to the type checker
        self,
        sentences1: str,
        sentences2: str,
        conditions: str | None = None,
        *,
        scale: Scale = "unit",
    ) -> float: ...

    @overload
    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        conditions: Texts | None = None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray: ...

    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        conditions: Texts | None = None,
        *,
        scale: Scale = "unit",
    ) -> float | FloatArray:
        """Scores pairs of sentences.

        Args:
            sentences1: First sentences, length n, or one for every row.
            sentences2: Second sentences, length n, or one for every row.
            conditions: Must be None: contexts know of no condition.
            scale: ``raw``: cosines of Eq. 4 in [-1, 1]; ``unit``: the same mapped to [0, 1]. See
                `condsim.scorers.inputs.Scale`.

        Returns:
            A float for single texts, else ``(n,)`` float32.

        Raises:
            InputError: If there are conditions, a sentence is empty, the lengths differ or the
                scale is unknown.
        """
        check_scale(scale)
        if conditions is not None:
            raise InputError(
                "The origin model compares whole sentences and takes no condition. Give data "
                "without conditions, such as STS-B, or fine-tune its surrogate on C-STS."
            )
        rows = check_rows(None, sentences1=sentences1, sentences2=sentences2)
        distinct = {text for column in rows.sentences for text in column}
        _LOGGER.info("%s: %s", self.name, self.cost(sentences=len(distinct), pairs=len(rows)))
        found = self.pair_terms(*rows.sentences)
        raw = [similarity(pair, weights=self._weights, center=self._center) for pair in found]
        scores = rescaled(np.array(raw, np.float32), self.calibration, scale)
        return float(scores[0]) if rows.single else scores

    def cost(self, *, sentences: int, pairs: int) -> Cost:
        """Says what scoring costs, after timing a few sentences in contexts if there is much to do.

        Args:
            sentences: Distinct sentences among the pairs.
            pairs: Pairs.

        Returns:
            The cost, with the time expected on this machine as it is now if that was measured.
        """
        counted = cost_of(
            sentences=sentences,
            pairs=pairs,
            corpus=len(self._corpus),
            selection=self._selection,
            weights=self._weights,
            references=self._references if self._center == "context" else 0,
            tokens_per_sequence=TOKENS,
        )
        trial = counted.models * TRIAL * 2 * self._selection.size
        if counted.sequences <= 10 * trial:
            return counted  # done before a trial would pay
        if self._rate is None:
            self._rate = self._timed()
        return replace(counted, seconds=counted.sequences / self._rate)

    def _timed(self) -> float:
        """Sequences scored in a second: sentences of the corpus in contexts of the usual number."""
        random = np.random.default_rng(0)
        count = min(TRIAL, len(self._corpus))
        sentences = self._corpus.sentences(random.choice(len(self._corpus), count, replace=False))
        size = min(2 * self._selection.size, len(self._corpus))
        centres = [random.choice(len(self._corpus), size, replace=False) for _ in sentences]
        names = [name for name in self._weights.used if name != "coherence"]
        self._terms.terms(sentences[:1], centres[:1], names)  # warms up
        started = time.perf_counter()
        self._terms.terms(sentences, centres, names)
        return count * size * len(names) / (time.perf_counter() - started)

    def pair_terms(
        self, sentences1: Sequence[str], sentences2: Sequence[str]
    ) -> Iterator[PairTerms]:
        """Computes what a score is made of, for tuning λ or leaving terms out without a new run.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.

        Yields:
            The terms of each pair, in order; those of weight 0 are missing.
        """
        sets: dict[str, ContextSet] = {}
        pairs = iter(zip(sentences1, sentences2, strict=True))
        while block := list(islice(pairs, self._batch_size)):
            needed = dict.fromkeys(sentence for pair in block for sentence in pair)
            self._add_sets(sets, [sentence for sentence in needed if sentence not in sets])
            yield from self._terms_of(block, sets)

    def _add_sets(self, sets: dict[str, ContextSet], sentences: list[str]) -> None:
        if not sentences:
            return
        found = select(
            sentences,
            corpus=self._corpus,
            index=self._index,
            scorer=self._terms,
            selection=self._selection,
            weights=self._weights,
        )
        self.without_contexts += sum(one.random for one in found)
        sets.update(zip(sentences, found, strict=True))

    def _terms_of(
        self, block: Sequence[tuple[str, str]], sets: Mapping[str, ContextSet]
    ) -> Iterator[PairTerms]:
        names = self._weights.used
        # In its own contexts a sentence was scored when they were chosen.
        asked = {(one, other): None for pair in block for one, other in (pair, pair[::-1])}
        answers = self._terms.terms(
            [one for one, _ in asked], [sets[other].centres for _, other in asked], names
        )
        cross = dict(zip(asked, answers, strict=True))
        distinct = [np.concatenate([sets[one].centres for one in pair]) for pair in block]
        centred = self._center == "context"
        means = self._means.of(distinct, names) if centred else [{} for _ in block]
        for (first, second), mean in zip(block, means, strict=True):
            own = {name: (sets[first].terms[name], sets[second].terms[name]) for name in names}
            yield PairTerms(
                first={
                    name: np.concatenate([own[name][0], cross[first, second][name]])
                    for name in names
                },
                second={
                    name: np.concatenate([cross[second, first][name], own[name][1]])
                    for name in names
                },
                means=mean,
            )


class _ContextMeans:
    """The mean term of each context over a few sentences of the corpus, computed once."""

    def __init__(self, corpus: Places, terms: TermScorer, references: int, *, seed: int) -> None:
        drawn = np.random.default_rng(seed).choice(
            len(corpus), size=min(references, len(corpus)), replace=False
        )
        self._sentences = corpus.sentences(np.sort(drawn).astype(np.int64))
        self._terms = terms
        self._rows = len(corpus)
        self._known: dict[str, FloatArray] = {}
        self._done: dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}

    def of(self, groups: Sequence[IntArray], names: Sequence[str]) -> list[dict[str, FloatArray]]:
        """The means of groups of contexts: for each group the terms by name."""
        for name in names:
            self._known.setdefault(name, np.zeros(self._rows, np.float32))
            self._done.setdefault(name, np.zeros(self._rows, np.bool_))
        every = np.unique(np.concatenate(groups)) if groups else np.zeros(0, np.int64)
        missing = every[~self._done[names[0]][every]]
        if len(missing):
            found = self._terms.terms(self._sentences, [missing] * len(self._sentences), names)
            for name in names:
                stacked = np.stack([terms[name] for terms in found])  # (references, missing)
                self._known[name][missing] = stacked.mean(axis=0)
                self._done[name][missing] = True
        return [{name: self._known[name][group] for name in names} for group in groups]
