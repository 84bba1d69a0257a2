"""The origin score: two sentences are alike when the same contexts fit both (SSBC §3.3, Eq. 4)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import get_args

import numpy as np

from condsim.contexts.scoring.centering import ContextMeans, SentenceMeans
from condsim.contexts.scoring.cost import Cost, cost_of
from condsim.contexts.scoring.equations import OF_SENTENCES, Center, PairTerms, Weights, similarity
from condsim.contexts.scoring.selection import (
    ContextSet,
    Places,
    Retriever,
    Selection,
    TermScorer,
    far_from,
    select,
)
from condsim.errors import InputError, unknown_name
from condsim.kept import KeptScores
from condsim.scorers import Calibration, PairScorer, Rows, Scale, rescaled
from condsim.types import BoolArray, FloatArray

TOKENS = 25.0
"""Tokens of a target, about, for the cost that is said beforehand."""
TRIAL = 1_500
"""Sequences of each model that are scored to time it: as many as pass through it together."""

_QUIET = 30.0  # seconds between two lines that say how far it is

_LINEAR = Calibration(raw=(-1.0, 1.0), score=(0.0, 1.0))
_LOGGER = logging.getLogger("condsim.contexts")


class OriginScorer(PairScorer):
    """Scores pairs of sentences by the contexts of a corpus; no label was seen on the way.

    The raw score is the cosine of Eq. 4, in [-1, 1]. Contexts know of no condition, so there must
    be none. What scoring will cost, and every half minute how far it is, is logged as information
    by ``condsim.contexts``.

    Attributes:
        name: Name of the scorer.
        revision: Version of the model, as it was given; None if its scores may not be kept.
        scored_by: What decides a score beside the models: weights (λ), centring and selection.
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
        center: Center = "pmi",
        references: int = 8,
        batch_size: int = 64,
        name: str = "origin",
        revision: str | None = None,
        kept: KeptScores | None = None,
    ) -> None:
        """Prepares; nothing is computed.

        Args:
            corpus: The corpus.
            index: Its index.
            terms: Computes the terms of Eq. 3.
            selection: How context sets are made; the paper's by default.
            weights: λ of Eq. 3, for the choice of contexts and for the score; all 1 by default.
            center: See `condsim.contexts.scoring.equations.Center`.
            references: Contexts of the corpus that a sentence's mean term is taken over, and
                sentences that a context's is.
            batch_size: Pairs scored together; encoder states are shared among them.
            name: Name of the scorer.
            revision: Stands for all that decides a score: corpus, models and settings. Without it
                nobody keeps the scores, as one that is given may be taken for another.
            kept: Where :meth:`score` looks pairs up and keeps them when there is more than a batch
                of them, so that a long run that is stopped can go on.

        Raises:
            InputError: If the centring is unknown or a number is below 1.
        """
        if center not in get_args(Center):
            raise unknown_name("centring", str(center), get_args(Center))
        for what, value in (("references", references), ("batch_size", batch_size)):
            if value < 1:
                raise InputError(f"'{what}' must be at least 1. Got {value}.")
        self.name = name
        self.revision = revision
        self.calibration = _LINEAR
        self.without_contexts = 0
        self._corpus, self._index, self._terms = corpus, index, terms
        self._selection = selection or Selection()
        self._weights = weights or Weights()
        self._center: Center = center
        self._batch_size = batch_size
        self._references = references
        self.scored_by: dict[str, object] = {
            "weights": self._weights.model_dump(),
            "center": center,
            "references": references,
            "selection": self._selection.model_dump(),
        }
        self._rate: float | None = None
        self._kept = kept
        self._means = ContextMeans(corpus, terms, references, seed=self._selection.seed)

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        if rows.conditions is not None:
            raise InputError(
                "The origin model compares whole sentences and takes no condition. Give data "
                "without conditions, such as STS-B, or fine-tune its surrogate on C-STS."
            )
        return rescaled(self._kept_cosines(*rows.sentences), self.calibration, scale)

    def _kept_cosines(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """The cosines of pairs, those that are kept taken from there."""
        kept = self._kept if len(sentences1) > self._batch_size else None
        found = np.full(len(sentences1), np.nan, np.float32)
        if kept is not None:
            found = kept.find(sentences1, sentences2)
        missing: list[int] = np.flatnonzero(np.isnan(found)).tolist()
        if len(missing) < len(found):
            known = len(found) - len(missing)
            _LOGGER.info("%s: %s pairs were scored before", self.name, f"{known:,}")
        if missing:
            first = [sentences1[row] for row in missing]
            second = [sentences2[row] for row in missing]
            found[missing] = self._long_work(first, second, kept)
        return found

    def _long_work(
        self, sentences1: Sequence[str], sentences2: Sequence[str], kept: KeptScores | None
    ) -> FloatArray:
        """The cosines of pairs; tells what they cost, then how far it is."""
        distinct, pairs = len({*sentences1, *sentences2}), len(sentences1)
        _LOGGER.info("%s: %s", self.name, self.cost(sentences=distinct, pairs=pairs))
        before = self.without_contexts
        raw: list[float] = []
        told = time.monotonic()
        for cosine in self._cosines(sentences1, sentences2):
            raw.append(cosine)
            if kept is not None and (len(raw) % self._batch_size == 0 or len(raw) == pairs):
                first = (len(raw) - 1) // self._batch_size * self._batch_size
                kept.add(sentences1[first : len(raw)], sentences2[first : len(raw)], raw[first:])
            if time.monotonic() - told > _QUIET:
                told = time.monotonic()
                _LOGGER.info("%s: %s of %s pairs", self.name, f"{len(raw):,}", f"{pairs:,}")
        if lost := self.without_contexts - before:
            _LOGGER.warning(
                "%s: %s sentences had no context but random ones", self.name, f"{lost:,}"
            )
        return np.array(raw, np.float32)

    def cosines(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Scores pairs without a word on what it costs, as a harvest does that has said it.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.

        Returns:
            The cosines of Eq. 4, in [-1, 1], ``(n,)``.
        """
        return np.array(list(self._cosines(sentences1, sentences2)), np.float32)

    def _cosines(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> Iterator[float]:
        for pair in self.pair_terms(sentences1, sentences2):
            yield similarity(pair, weights=self._weights, center=self._center)

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
            center=self._center,
            references=self._references,
            tokens_per_sequence=TOKENS,
        )
        if counted.sequences <= 10 * counted.models * TRIAL:
            return counted  # done before a trial would pay
        if self._rate is None:
            self._rate = self._timed()
        return replace(counted, seconds=counted.sequences / self._rate)

    def _timed(self) -> float:
        """Sequences scored in a second: sentences of the corpus in contexts of the usual number."""
        random = np.random.default_rng(0)
        contexts = np.flatnonzero(self._corpus.has_context)
        size = min(2 * self._selection.size, len(contexts))
        count = min(-(-TRIAL // size), len(self._corpus))
        sentences = self._corpus.sentences(random.choice(len(self._corpus), count, replace=False))
        centres = [random.choice(contexts, size, replace=False) for _ in sentences]
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
        alone = SentenceMeans(
            self._corpus, self._terms, self._references, seed=self._selection.seed
        )
        pairs = iter(zip(sentences1, sentences2, strict=True))
        while block := list(islice(pairs, self._batch_size)):
            needed = dict.fromkeys(sentence for pair in block for sentence in pair)
            self._add_sets(sets, [sentence for sentence in needed if sentence not in sets])
            yield from self._terms_of(block, sets, alone)

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
        self,
        block: Sequence[tuple[str, str]],
        sets: Mapping[str, ContextSet],
        sentence_means: SentenceMeans,
    ) -> Iterator[PairTerms]:
        names = self._weights.used
        # In its own contexts a sentence was scored when they were chosen.
        asked = {(one, other): None for pair in block for one, other in (pair, pair[::-1])}
        answers = self._terms.terms(
            [one for one, _ in asked], [sets[other].centres for _, other in asked], names
        )
        cross = {
            (one, other): _blanked(terms, far_from(sets[one].own, sets[other].centres))
            for (one, other), terms in zip(asked, answers, strict=True)
        }
        distinct = [np.concatenate([sets[one].centres for one in pair]) for pair in block]
        off_sentences = [name for name in names if self._center == "pmi" and name in OF_SENTENCES]
        off_contexts = [name for name in names if name not in off_sentences]
        means = self._means.of(distinct, off_contexts if self._center != "none" else ())
        alone = sentence_means.of(block, off_sentences)
        for (first, second), mean, own_mean in zip(block, means, alone, strict=True):
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
                alone=own_mean,
            )


def _blanked(terms: Mapping[str, FloatArray], kept: BoolArray) -> dict[str, FloatArray]:
    """NaN, which no cosine counts, for contexts from where the sentence itself stands."""
    return {name: np.where(kept, values, np.nan) for name, values in terms.items()}
