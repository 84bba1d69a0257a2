"""The context set of a sentence: retrieved, ranked by coherence, chosen by Eq. 3 (SSBC §3.3)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from condsim.contexts.corpus import Corpus, near_duplicate_key, spans
from condsim.contexts.index import TfidfIndex
from condsim.contexts.scoring.equations import Weights, context_scores
from condsim.contexts.scoring.terms import TermScorer
from condsim.settings import Settings
from condsim.types import BoolArray, FloatArray, IntArray

LIKENESS = 0.5
"""Jaccard similarity from which two left neighbours are too much alike."""


def diverse(
    chunks: IntArray, neighbours: Sequence[str], *, count: int, likeness: float = LIKENESS
) -> IntArray:
    """Picks contexts from the best down: their places, ``(at most count,)``.

    A context is taken if its chunk has given none so far and the words of its left neighbour are
    less than ``likeness`` alike (Jaccard) to those of every one that was taken.

    Args:
        chunks: Chunk of each context, best context first, ``(k,)``.
        neighbours: Left neighbour of each; empty for none.
        count: Contexts to pick at most.
        likeness: Jaccard similarity from which two are too much alike.
    """
    words, sizes = _word_matrix(neighbours)
    blocked = np.zeros(len(chunks), np.bool_)
    taken: list[int] = []
    for place in range(len(chunks)):
        if len(taken) == count:
            break
        if blocked[place]:
            continue
        taken.append(place)
        blocked |= chunks == chunks[place]
        if sizes[place]:
            shared = words @ words[place].toarray().ravel()
            union = sizes + sizes[place] - shared
            blocked |= shared >= likeness * union
    return np.array(taken, np.int64)


def _word_matrix(sentences: Sequence[str]) -> tuple[Any, NDArray[np.float32]]:
    """Which words each sentence has, ``(k, words)`` sparse, and how many, ``(k,)``."""
    from scipy import sparse

    numbers: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for sentence in sentences:
        distinct = set(sentence.casefold().split())
        columns.extend(numbers.setdefault(word, len(numbers)) for word in distinct)
        starts.append(len(columns))
    ones = np.ones(len(columns), np.float32)
    shape = (len(sentences), max(len(numbers), 1))
    matrix = sparse.csr_array((ones, columns, starts), shape=shape)
    return matrix, np.diff(starts).astype(np.float32)


NEAR = 10
"""Sentences on each side of a sentence whose contexts are not asked about it."""

_CHUNKS = 100  # the best chunks in which a sentence of the corpus is looked for


def own_rows(sentence: str, chunks: IntArray, corpus: Corpus) -> IntArray:
    """Rows of the corpus where a sentence stands, ``(k,)``, of the chunks most like it."""
    rows = chunk_rows(chunks[:_CHUNKS], corpus)
    key = near_duplicate_key(sentence)
    found = [near_duplicate_key(text) == key for text in corpus.sentences(rows)]
    return rows[np.array(found, dtype=np.bool_)]


def chunk_rows(chunks: IntArray, corpus: Corpus) -> IntArray:
    """Rows of the sentences of chunks, those of the first chunk first, ``(k,)``."""
    starts = corpus.chunk_starts
    return spans(starts[chunks], starts[chunks + 1] - starts[chunks])


def far_from(own: IntArray, centres: IntArray) -> BoolArray:
    """Which centres, ``(n,)``, are far from all rows where a sentence stands, ``(k,)``."""
    apart = np.abs(centres[:, None] - own)  # (n, k)
    far: BoolArray = (apart > NEAR).all(axis=1)
    return far


class Selection(Settings):
    """How context sets are made.

    Attributes:
        strategy: ``two-step``: retrieval, coherence, Eq. 3, one context a chunk; ``random``: any
            contexts of the corpus; ``no-diversity``: two-step without the rules that keep contexts
            apart (§5.4).
        size: Contexts in a set, |C_s| (paper: 500).
        chunks: Chunks to retrieve for a sentence (paper: 20,000). In a small corpus only the first
            have more than a common word with it; there a few times ``size`` does better.
        candidates: Contexts that pass from the ranking by coherence to that by Eq. 3, as a multiple
            of ``size``, spread evenly over the chunks since one of a chunk is chosen; 1 leaves the
            choice to coherence. The paper does not say.
        likeness: Jaccard similarity from which two left neighbours are too much alike.
        seed: Seed of random contexts.
    """

    strategy: Literal["two-step", "random", "no-diversity"] = "two-step"
    size: Annotated[int, Field(ge=1)] = 500
    chunks: Annotated[int, Field(ge=1)] = 20_000
    candidates: Annotated[float, Field(ge=1)] = 4.0
    likeness: Annotated[float, Field(gt=0, le=1)] = LIKENESS
    seed: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, eq=False)
class ContextSet:
    """The contexts of one sentence, best first.

    Attributes:
        centres: Their centres, ``(k,)``; fewer than were asked for if the corpus has no more.
        terms: The sentence's terms in them, each ``(k,)``.
        random: Whether they are random because no chunk shares a word with the sentence.
        own: Where the sentence itself stands in the corpus, ``(j,)``.
    """

    centres: IntArray
    terms: Mapping[str, FloatArray]
    random: bool = False
    own: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))


def select(
    sentences: Sequence[str],
    *,
    corpus: Corpus,
    index: TfidfIndex,
    scorer: TermScorer,
    selection: Selection,
    weights: Weights,
) -> list[ContextSet]:
    """Makes the context sets of sentences."""
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
    sentences: Sequence[str], corpus: Corpus, index: TfidfIndex, selection: Selection
) -> tuple[list[IntArray], list[IntArray]]:
    """The contexts of retrieved chunks that are far from the sentence, and where it stands."""
    pools, own = [], []
    found = index.search(sentences, top_n=selection.chunks)
    for sentence, (chunks, _) in zip(sentences, found, strict=True):
        pool, rows = chunk_rows(chunks, corpus), own_rows(sentence, chunks, corpus)
        pools.append(pool[far_from(rows, pool)])
        own.append(rows)
    return pools, own


def _random(sentence: str, corpus: Corpus, selection: Selection, own: IntArray) -> IntArray:
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
    corpus: Corpus,
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
    corpus: Corpus,
    selection: Selection,
    weights: Weights,
) -> ContextSet:
    """Chooses from the candidates by Eq. 3, one at a time."""
    order = _descending(context_scores(terms, weights))
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
