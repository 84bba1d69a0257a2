"""The context set of a sentence: retrieved, ranked by coherence, chosen by Eq. 3 (SSBC §3.3)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from condsim.contexts.corpus import Corpus
from condsim.contexts.equations import ContextTerms, context_scores
from condsim.contexts.index import TfidfIndex
from condsim.contexts.recipe import Selection, Weights
from condsim.contexts.sentences import near_duplicate_key
from condsim.types import BoolArray, FloatArray, IntArray

SENTENCES_APART = 10
"""Sentences on each side of a sentence whose contexts are not scored with it."""

# The best chunks in which a sentence of the corpus is looked for.
_OWN_CHUNKS = 100


@dataclass(frozen=True, eq=False)
class ContextSet:
    """The contexts of one sentence, best first, ``(k,)``, and its terms in them.

    ``own`` are the rows of the sentence itself in the corpus, ``(j,)``; the contexts are ``random``
    if no chunk shares a word with it.
    """

    centres: IntArray
    terms: Mapping[str, FloatArray]
    own: IntArray
    random: bool


@dataclass(frozen=True, eq=False)
class ContextSelector:
    """Selection of the context sets of sentences."""

    corpus: Corpus
    index: TfidfIndex
    scorer: ContextTerms
    selection: Selection
    weights: Weights

    def select(self, sentences: Sequence[str]) -> list[ContextSet]:
        """Choose the contexts of each sentence."""
        if self.selection.strategy == "random":
            # The sentence's own rows are not looked for: few contexts would be near them.
            own_rows = [np.zeros(0, np.int64)] * len(sentences)
            pools = list(map(self._random, sentences, own_rows))
            is_random = [True] * len(sentences)
        else:
            pools, own_rows = self._retrieved(sentences)
            is_random = [not len(pool) for pool in pools]
            pools = self._most_coherent(sentences, pools)
            for number in np.flatnonzero(is_random).tolist():
                pools[number] = self._random(sentences[number], own_rows[number])
        scores = self.scorer.terms(sentences, pools, self.weights.used)
        sets = []
        for pool, terms, own, random in zip(pools, scores, own_rows, is_random, strict=True):
            order = np.arange(len(pool)) if random else self._best(pool, terms)
            chosen = {name: values[order] for name, values in terms.items()}
            is_lost = random and self.selection.strategy != "random"
            sets.append(ContextSet(pool[order], chosen, own, is_lost))
        return sets

    def _retrieved(self, sentences: Sequence[str]) -> tuple[list[IntArray], list[IntArray]]:
        """Retrieve contexts far from each sentence, and the rows of the sentence itself."""
        pools, own_rows = [], []
        results = self.index.search(sentences, top_n=self.selection.chunks)
        for sentence, (chunks, _) in zip(sentences, results, strict=True):
            pool, own = self.corpus.chunk_rows(chunks), find_sentence(sentence, chunks, self.corpus)
            pools.append(pool[are_far(own, pool)])
            own_rows.append(own)
        return pools, own_rows

    def _random(self, sentence: str, own: IntArray) -> IntArray:
        """Draw centers that depend on the sentence alone, far from its own rows."""
        digest = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()
        random = np.random.default_rng([self.selection.seed, int.from_bytes(digest[:8], "big")])
        centres = np.flatnonzero(self.corpus.has_context)
        centres = centres[are_far(own, centres)]
        size = min(self.selection.size, len(centres))
        return random.choice(centres, size=size, replace=False).astype(np.int64)

    def _most_coherent(self, sentences: Sequence[str], pools: Sequence[IntArray]) -> list[IntArray]:
        """Choose the most coherent contexts, best first; as retrieved if coherence is unused."""
        if "coherence" in self.weights.used:
            scores = self.scorer.terms(sentences, pools, ("coherence",))
            pools = [
                pool[_descending(terms["coherence"])]
                for pool, terms in zip(pools, scores, strict=True)
            ]
        count = round(self.selection.candidates * self.selection.size)
        chosen = []
        for pool in pools:
            if self.selection.strategy == "two-step" and len(pool):
                # One of each chunk is chosen in the end.
                chunks = self.corpus.chunk_of(pool)
                most = math.ceil(count / len(np.unique(chunks)))
                pool = pool[_rank_in_group(chunks) < most]
            chosen.append(pool[:count])
        return chosen

    def _best(self, pool: IntArray, terms: Mapping[str, FloatArray]) -> IntArray:
        """Choose the places of the best candidates by Eq. 3, one at a time."""
        order = _descending(context_scores(terms, self.weights))
        if self.selection.strategy == "two-step":
            ordered = pool[order]
            before = self.corpus.neighbours(ordered, left=1, right=0)[:, 0]
            neighbours = np.full(len(ordered), "", dtype=object)
            neighbours[before >= 0] = self.corpus.sentences(before[before >= 0])
            size, likeness = self.selection.size, self.selection.likeness
            chunks = self.corpus.chunk_of(ordered)
            order = order[diverse(chunks, neighbours.tolist(), count=size, likeness=likeness)]
        return order[: self.selection.size]


def find_sentence(sentence: str, chunks: IntArray, corpus: Corpus) -> IntArray:
    """Find the rows of the corpus with a sentence, ``(k,)``, among the chunks most like it."""
    rows = corpus.chunk_rows(chunks[:_OWN_CHUNKS])
    key = near_duplicate_key(sentence)
    is_same = [near_duplicate_key(text) == key for text in corpus.sentences(rows)]
    return rows[np.array(is_same, dtype=np.bool_)]


def are_far(own: IntArray, centres: IntArray) -> BoolArray:
    """Flag the centers, ``(n,)``, that are far from all rows of a sentence, ``(k,)``."""
    distances = np.abs(centres[:, None] - own)  # (n, k)
    far: BoolArray = (distances > SENTENCES_APART).all(axis=1)
    return far


def diverse(
    chunks: IntArray, neighbours: Sequence[str], *, count: int, likeness: float = 0.5
) -> IntArray:
    """Pick the places of contexts from the best down, at most one of each chunk.

    The words of its left neighbor must be less than ``likeness`` alike (Jaccard) to those of every
    one that was picked before.
    """
    words, sizes = _word_matrix(neighbours)
    blocked = np.zeros(len(chunks), np.bool_)
    picked: list[int] = []
    for candidate in range(len(chunks)):
        if len(picked) == count:
            break
        if blocked[candidate]:
            continue
        picked.append(candidate)
        blocked |= chunks == chunks[candidate]
        if sizes[candidate]:
            shared = words @ words[candidate].toarray().ravel()
            union = sizes + sizes[candidate] - shared
            blocked |= shared >= likeness * union
    return np.array(picked, np.int64)


def _word_matrix(sentences: Sequence[str]) -> tuple[sparse.csr_array, NDArray[np.float32]]:
    """Mark the words of each sentence, ``(k, words)`` sparse, and count them, ``(k,)``."""
    numbers: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for sentence in sentences:
        distinct = set(sentence.casefold().split())
        columns.extend(numbers.setdefault(word, len(numbers)) for word in distinct)
        starts.append(len(columns))
    shape = (len(sentences), max(len(numbers), 1))
    matrix = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts), shape=shape)
    return matrix, np.diff(starts).astype(np.float32)


def _rank_in_group(groups: IntArray) -> IntArray:
    """Count the earlier members of the same group, ``(k,)``."""
    order = np.argsort(groups, kind="stable")
    sizes = np.diff(np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1)))
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _descending(scores: FloatArray) -> IntArray:
    """Order places by score, best first; ties in their order, NaN last."""
    return np.argsort(-scores, kind="stable")
