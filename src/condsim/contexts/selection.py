"""The context set of a sentence: retrieved, ranked by coherence, chosen by Eq. 3 (SSBC §3.3)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, get_args

import numpy as np

from condsim.contexts.diversity import LIKENESS, diverse
from condsim.contexts.eq3 import Weights, fit
from condsim.contexts.own_place import chunk_rows, far_from, own_rows
from condsim.contexts.ranges import at_least, check_ranges
from condsim.errors import InputError, unknown_name
from condsim.types import BoolArray, FloatArray, IntArray

__all__ = ["ContextSet", "Selection", "Strategy", "TermScorer", "select"]

Strategy = Literal["two-step", "random", "no-diversity"]
"""``two-step``: retrieval, coherence, Eq. 3, one context a chunk; ``random``: any contexts of the
corpus; ``no-diversity``: two-step without the rules that keep contexts apart (§5.4)."""


class TermScorer(Protocol):
    """What computes the terms of Eq. 3 for sentences in contexts."""

    def terms(
        self, sentences: Sequence[str], centres: Sequence[IntArray], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Computes terms.

        Args:
            sentences: Sentences, length m.
            centres: The contexts of each, m arrays of any length.
            names: Which terms (`condsim.contexts.eq3.TERMS`).

        Returns:
            For each sentence the terms by name, each of the length of its contexts.
        """


class Retriever(Protocol):
    """What finds chunks of the corpus that have words in common with a sentence.

    Documents of one sentence are never found: there is no context in them.
    """

    def search(
        self, sentences: Sequence[str], *, top_n: int = 20_000
    ) -> list[tuple[IntArray, FloatArray]]:
        """Finds the best chunks of each sentence, best first."""


class Places(Protocol):
    """What a selection needs to know of a corpus."""

    def __len__(self) -> int:
        """Number of sentences."""

    @property
    def revision(self) -> str:
        """What tells corpora apart."""

    @property
    def has_context(self) -> BoolArray:
        """Which sentences have another beside them, ``(n,)``."""

    @property
    def chunk_starts(self) -> IntArray:
        """First sentence of each chunk, and the number of sentences, ``(m + 1,)``."""

    def sentences(self, ids: IntArray) -> list[str]:
        """Texts of sentences."""

    def chunk_of(self, ids: IntArray) -> IntArray:
        """Chunk of each sentence."""

    def neighbours(self, centres: IntArray, *, left: int = 2, right: int = 2) -> IntArray:
        """Ids around each centre, ``(k, left + right)``; -1 where there is none."""


@dataclass(frozen=True)
class Selection:
    """How context sets are made.

    Attributes:
        strategy: See `Strategy`.
        size: Contexts in a set, |C_s| (paper: 500).
        chunks: Chunks to retrieve for a sentence (paper: 20,000). In a small corpus only the first
            have more than a common word with it; there a few times ``size`` does better.
        candidates: Contexts that pass from the ranking by coherence to that by Eq. 3, as a multiple
            of ``size``, spread evenly over the chunks since one of a chunk is chosen; 1 leaves the
            choice to coherence. The paper does not say.
        likeness: Jaccard similarity from which two left neighbours are too much alike.
        seed: Seed of random contexts.
    """

    strategy: Strategy = "two-step"
    size: int = 500
    chunks: int = 20_000
    candidates: float = 4.0
    likeness: float = LIKENESS
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        if self.strategy not in get_args(Strategy):
            raise unknown_name("strategy", str(self.strategy), get_args(Strategy))
        names = ("size", "chunks", "candidates")
        check_ranges("selection", self, **dict.fromkeys(names, at_least(1)), seed=at_least(0))
        if not 0 < self.likeness <= 1:
            raise InputError(
                f"'selection.likeness' must be above 0 and at most 1. Got {self.likeness}."
            )


@dataclass(frozen=True, eq=False)
class ContextSet:
    """The contexts of one sentence, best first.

    Attributes:
        centres: Their centres, ``(k,)``; fewer than were asked for if the corpus has no more.
        terms: The sentence's terms in them, each ``(k,)``.
        random: Whether they are random because no chunk shares a word with the sentence.
        own: Where the sentence itself stands in the corpus, ``(j,)``; see
            `condsim.contexts.own_place`.
    """

    centres: IntArray
    terms: Mapping[str, FloatArray]
    random: bool = False
    own: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))


def select(
    sentences: Sequence[str],
    *,
    corpus: Places,
    index: Retriever,
    scorer: TermScorer,
    selection: Selection,
    weights: Weights,
) -> list[ContextSet]:
    """Makes the context sets of sentences.

    Args:
        sentences: Sentences, length m.
        corpus: The corpus.
        index: Its index.
        scorer: Computes the terms of Eq. 3.
        selection: How the sets are made.
        weights: λ of Eq. 3; terms of weight 0 are not computed.

    Returns:
        One set for each sentence, with all terms in use. A sentence that shares no word with the
        corpus, but for where it stands itself, gets random contexts.
    """
    if selection.strategy == "random":
        nowhere = np.zeros(0, np.int64)  # few random contexts would be from where it stands
        pools = [_random(sentence, corpus, selection, nowhere) for sentence in sentences]
        terms = scorer.terms(sentences, pools, weights.used)
        return [ContextSet(pool, found) for pool, found in zip(pools, terms, strict=True)]
    pools, own = _pools(sentences, corpus, index, selection)
    without = [not len(pool) for pool in pools]
    pools = _most_coherent(sentences, pools, scorer, corpus, selection, weights)
    for place in np.flatnonzero(without).tolist():
        pools[place] = _random(sentences[place], corpus, selection, own[place])
    terms = scorer.terms(sentences, pools, weights.used)
    return [
        ContextSet(pool, found, random=True, own=rows)
        if random
        else replace(_best(pool, found, corpus, selection, weights), own=rows)
        for pool, found, random, rows in zip(pools, terms, without, own, strict=True)
    ]


def _pools(
    sentences: Sequence[str], corpus: Places, index: Retriever, selection: Selection
) -> tuple[list[IntArray], list[IntArray]]:
    """The contexts that may be chosen, the best chunk first, and where each sentence stands.

    They are all of the retrieved chunks but those from where the sentence itself stands.
    """
    pools, own = [], []
    found = index.search(sentences, top_n=selection.chunks)
    for sentence, (chunks, _) in zip(sentences, found, strict=True):
        pool, rows = chunk_rows(chunks, corpus), own_rows(sentence, chunks, corpus)
        pools.append(pool[far_from(rows, pool)])
        own.append(rows)
    return pools, own


def _random(sentence: str, corpus: Places, selection: Selection, own: IntArray) -> IntArray:
    """Centres drawn for a sentence, far from where it stands and whatever the others are."""
    digest = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()
    random = np.random.default_rng([selection.seed, int.from_bytes(digest[:8], "big")])
    centres = np.flatnonzero(corpus.has_context)
    centres = centres[far_from(own, centres)]
    size = min(selection.size, len(centres))
    return random.choice(centres, size=size, replace=False).astype(np.int64)


def _most_coherent(
    sentences: Sequence[str],
    pools: Sequence[IntArray],
    scorer: TermScorer,
    corpus: Places,
    selection: Selection,
    weights: Weights,
) -> list[IntArray]:
    """Keeps the most coherent contexts, best first; in retrieval's order if coherence is unused."""
    if "coherence" in weights.used:
        found = scorer.terms(sentences, pools, ("coherence",))
        orders = [_descending(terms["coherence"]) for terms in found]
    else:
        orders = [np.arange(len(pool)) for pool in pools]
    count = round(selection.candidates * selection.size)
    kept = []
    for pool, order in zip(pools, orders, strict=True):
        ordered = pool[order]
        if selection.strategy == "two-step" and len(pool):  # one of a chunk is chosen in the end
            chunks = corpus.chunk_of(ordered)
            most = math.ceil(count / len(np.unique(chunks)))
            ordered = ordered[_rank_in_group(chunks) < most]
        kept.append(ordered[:count])
    return kept


def _rank_in_group(groups: IntArray) -> IntArray:
    """How many of the same group stand before each, ``(k,)``."""
    order = np.argsort(groups, kind="stable")
    sizes = np.diff(np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1)))
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _best(
    pool: IntArray,
    terms: Mapping[str, FloatArray],
    corpus: Places,
    selection: Selection,
    weights: Weights,
) -> ContextSet:
    """Chooses from the candidates by Eq. 3, one at a time."""
    order = _descending(fit(terms, weights))
    if selection.strategy == "two-step":
        ordered = pool[order]
        before = corpus.neighbours(ordered, left=1, right=0)[:, 0]
        texts = corpus.sentences(before[before >= 0])
        nearest = np.full(len(ordered), "", dtype=object)
        nearest[before >= 0] = texts
        chosen = diverse(
            corpus.chunk_of(ordered),
            nearest.tolist(),
            count=selection.size,
            likeness=selection.likeness,
        )
        order = order[chosen]
    order = order[: selection.size]
    return ContextSet(pool[order], {name: values[order] for name, values in terms.items()})


def _descending(scores: FloatArray) -> IntArray:
    """Places by score, best first; ties in their order, NaN last."""
    return np.argsort(-scores, kind="stable")
