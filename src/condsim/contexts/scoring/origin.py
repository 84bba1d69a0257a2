"""The origin score: two sentences are alike when the same contexts fit both (SSBC §3.3, Eq. 4)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from condsim.cache import KeptScores
from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.index.retrieval import TfidfIndex
from condsim.contexts.scoring.equations import (
    OF_SENTENCES,
    ContextMeans,
    PairTerms,
    ScoringSettings,
    TermScorer,
    similarity,
)
from condsim.contexts.scoring.selection import (
    ContextSelector,
    ContextSet,
    Cost,
    Selection,
    cost_of,
    far_from,
)
from condsim.errors import InputError
from condsim.model.base import PairScorer, Rows, Scale, rescaled
from condsim.model.calibration import Calibration
from condsim.types import FloatArray, IntArray

_TRIAL = 1_500  # sequences of each model that are scored to time it, as many as it takes at once
_QUIET = 30.0  # seconds between two lines of progress
_LINEAR = Calibration(raw=(-1.0, 1.0), score=(0.0, 1.0))
_LOGGER = logging.getLogger("condsim.contexts")


class OriginScorer(PairScorer):
    """Scores pairs of sentences by the contexts of a corpus; no label was seen on the way.

    The raw score is the cosine of Eq. 4, in [-1, 1]. Contexts know of no condition, so there must
    be none. The logger ``condsim.contexts`` gives the cost of scoring beforehand, and its progress
    every half minute.

    Attributes:
        name: Name of the scorer.
        revision: Version of the model, as it was given; None if its scores may not be kept.
        scored_by: What decides a score beside the models: weights (λ), centring and selection.
        weights: λ of Eq. 3.
        calibration: From a cosine to [0, 1], a straight line: no label was seen.
        without_contexts: Sentences so far that shared no word with the corpus; they were given
            random contexts.
    """

    def __init__(
        self,
        corpus: Corpus,
        index: TfidfIndex,
        terms: TermScorer,
        *,
        scoring: ScoringSettings | None = None,
        selection: Selection | None = None,
        name: str = "origin",
        revision: str | None = None,
        kept: KeptScores | None = None,
    ) -> None:
        """Prepares; nothing is computed.

        Args:
            terms: Computes the terms of Eq. 3.
            scoring: λ of Eq. 3, for the choice of contexts too, centring and size of batches, whose
                pairs share encoder states; all λ are 1 by default.
            selection: How context sets are made; the paper's by default.
            revision: Stands for all that decides a score: corpus, models and settings. Without it
                nobody keeps the scores, as one that is given may be taken for another.
            kept: Where :meth:`score` looks pairs up and keeps them when there is more than a batch
                of them, so that a long run that is stopped can go on.
        """
        self.name = name
        self.revision = revision
        self.calibration = _LINEAR
        self.without_contexts = 0
        self._corpus, self._terms = corpus, terms
        self._selection, self._scoring = selection or Selection(), scoring or ScoringSettings()
        self.weights, center = self._scoring.weights, self._scoring.center
        self._selector = ContextSelector(corpus, index, terms, self._selection, self.weights)
        self._batch_size = self._scoring.batch_size
        self.scored_by: dict[str, object] = {
            "weights": self.weights.model_dump(),
            "center": center,
            "references": self._scoring.references,
            "selection": self._selection.model_dump(),
        }
        self._rate: float | None = None
        self._kept = kept
        self._means = ContextMeans(
            corpus, terms, self._scoring.references, seed=self._selection.seed
        )
        used = self.weights.used if center != "none" else ()
        self._off_sentences = [name for name in used if center == "pmi" and name in OF_SENTENCES]
        self._off_contexts = [name for name in used if name not in self._off_sentences]

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        if rows.conditions is not None:
            raise InputError(
                "The origin model compares whole sentences and takes no condition. Give data "
                "without conditions, such as STS-B, or fine-tune its surrogate on C-STS."
            )
        return rescaled(self._kept_cosines(*rows.sentences), self.calibration, scale)

    def _kept_cosines(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """The cosines of pairs; logs the cost and the progress of those that are not kept."""
        kept = self._kept if len(sentences1) > self._batch_size else None
        found: FloatArray = np.full(len(sentences1), np.nan, np.float32)
        if kept is not None:
            found = kept.find(sentences1, sentences2)
        missing: list[int] = np.flatnonzero(np.isnan(found)).tolist()
        if known := len(found) - len(missing):
            _LOGGER.info("%s: %s pairs were scored before", self.name, f"{known:,}")
        if not missing:
            return found
        first, second = ([side[row] for row in missing] for side in (sentences1, sentences2))
        total, before, logged = len(missing), self.without_contexts, time.monotonic()
        cost = self.cost(sentences=len({*first, *second}), pairs=total)
        _LOGGER.info("%s: %s", self.name, cost)
        cosines = self._cosines(first, second)
        for start in range(0, total, self._batch_size):
            done = min(start + self._batch_size, total)
            scores = list(islice(cosines, done - start))
            found[missing[start:done]] = scores
            if kept is not None:
                kept.add(first[start:done], second[start:done], scores)
            if time.monotonic() - logged > _QUIET:
                logged = time.monotonic()
                _LOGGER.info("%s: %s of %s pairs", self.name, f"{done:,}", f"{total:,}")
        if lost := self.without_contexts - before:
            _LOGGER.warning(
                "%s: %s sentences had no context but random ones", self.name, f"{lost:,}"
            )
        return found

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
            yield similarity(pair, weights=self.weights, center=self._scoring.center)

    def cost(self, *, sentences: int, pairs: int) -> Cost:
        """Says what scoring costs, after timing a few sentences in contexts if there is much to do.

        Args:
            sentences: Distinct sentences among the pairs.

        Returns:
            The cost, with the time expected on this machine as it is now if that was measured.
        """
        counted = cost_of(
            sentences=sentences,
            pairs=pairs,
            corpus=len(self._corpus),
            selection=self._selection,
            scoring=self._scoring,
        )
        if counted.sequences <= 10 * counted.models * _TRIAL:
            return counted  # done before a trial would pay
        if self._rate is None:
            self._rate = self._timed()
        return replace(counted, seconds=counted.sequences / self._rate)

    def _timed(self) -> float:
        """Sequences scored in a second: sentences of the corpus in contexts of the usual number."""
        random = np.random.default_rng(0)
        contexts = np.flatnonzero(self._corpus.has_context)
        size = min(2 * self._selection.size, len(contexts))
        count = min(-(-_TRIAL // size), len(self._corpus))
        sentences = self._corpus.sentences(random.choice(len(self._corpus), count, replace=False))
        centres = [random.choice(contexts, size, replace=False) for _ in sentences]
        names = [name for name in self.weights.used if name != "coherence"]
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
        known: dict[str, _Sentence] = {}
        pairs = iter(zip(sentences1, sentences2, strict=True))
        while block := list(islice(pairs, self._batch_size)):
            asked = dict.fromkeys(sentence for pair in block for sentence in pair)
            self._prepare([sentence for sentence in asked if sentence not in known], known)
            yield from self._terms_of(block, known)

    def _prepare(self, sentences: list[str], known: dict[str, _Sentence]) -> None:
        """Chooses the contexts of sentences, and computes their means over reference contexts."""
        if not sentences:
            return
        sets = self._selector.select(sentences)
        self.without_contexts += sum(one.random for one in sets)
        means: list[dict[str, FloatArray]] = [{} for _ in sentences]
        if self._off_sentences:
            centres = [self._reference_centres] * len(sentences)
            means = self._terms.terms(sentences, centres, self._off_sentences)
        for sentence, contexts, terms in zip(sentences, sets, means, strict=True):
            alone = {name: float(values.mean()) for name, values in terms.items()}
            known[sentence] = _Sentence(contexts, alone)

    def terms_less_means(
        self, sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> list[dict[str, FloatArray]]:
        """Computes terms less the means of contexts, where the centring takes those off.

        The mean of a sentence is left in: it is the same in all contexts.

        Args:
            sentences: Sentences, length m.
            centres: The contexts of each, m arrays of any length.

        Returns:
            For each sentence the terms by name, each of the length of its contexts.
        """
        found = self._terms.terms(sentences, centres, self.weights.used)
        for terms, means in zip(found, self._means.of(centres, self._off_contexts), strict=True):
            for name, values in means.items():
                terms[name] = terms[name] - values
        return found

    @cached_property
    def _reference_centres(self) -> IntArray:
        centres = np.flatnonzero(self._corpus.has_context)
        random = np.random.default_rng(self._selection.seed)
        size = min(self._scoring.references, len(centres))
        return np.sort(random.choice(centres, size=size, replace=False)).astype(np.int64)

    def _terms_of(
        self, block: Sequence[tuple[str, str]], known: Mapping[str, _Sentence]
    ) -> Iterator[PairTerms]:
        # In its own contexts a sentence was scored when they were chosen.
        asked = {(one, other): None for pair in block for one, other in (pair, pair[::-1])}
        names = self.weights.used
        answers = self._terms.terms(
            [one for one, _ in asked], [known[other].contexts.centres for _, other in asked], names
        )
        cross = {}
        for (one, other), terms in zip(asked, answers, strict=True):
            # NaN, which no cosine counts, for contexts from where the sentence itself stands.
            far = far_from(known[one].contexts.own, known[other].contexts.centres)
            cross[one, other] = {
                name: np.where(far, values, np.nan) for name, values in terms.items()
            }
        both = [np.concatenate([known[one].contexts.centres for one in pair]) for pair in block]
        means = self._means.of(both, self._off_contexts)
        for (first, second), mean in zip(block, means, strict=True):
            own = [known[one].contexts.terms for one in (first, second)]
            there, back = cross[first, second], cross[second, first]
            yield PairTerms(
                first={name: np.concatenate([own[0][name], there[name]]) for name in names},
                second={name: np.concatenate([back[name], own[1][name]]) for name in names},
                means=mean,
                alone={
                    name: np.array([known[one].alone[name] for one in (first, second)], np.float32)
                    for name in self._off_sentences
                },
            )


@dataclass(frozen=True)
class _Sentence:
    """The contexts of a sentence, and its mean terms over the reference contexts."""

    contexts: ContextSet
    alone: Mapping[str, float]
