"""The context set of a sentence: retrieved, ranked by coherence, chosen by Eq. 3 (SSBC §3.3)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse

from condsim.config import Settings
from condsim.contexts.corpus.reading import near_duplicate_key
from condsim.contexts.corpus.stored import Corpus, spans
from condsim.contexts.index.retrieval import TfidfIndex
from condsim.contexts.scoring.equations import ScoringSettings, TermScorer, Weights, context_scores
from condsim.types import BoolArray, FloatArray, IntArray

LIKENESS = 0.5
"""Jaccard similarity from which two left neighbours are too much alike."""


def diverse(
    chunks: IntArray, neighbours: Sequence[str], *, count: int, likeness: float = LIKENESS
) -> IntArray:
    """Picks contexts from the best down, at most one of each chunk: their places."""
    # The words of its left neighbour must be less than ``likeness`` alike (Jaccard) to those of
    # every one that was taken.
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


def _word_matrix(sentences: Sequence[str]) -> tuple[sparse.csr_array, NDArray[np.float32]]:
    """Which words each sentence has, ``(k, words)`` sparse, and how many, ``(k,)``."""
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
    """How context sets are made."""

    what = "selection"

    # `two-step`: retrieval, coherence, Eq. 3, one context a chunk; `random`: any contexts of the
    # corpus; `no-diversity`: two-step without the rules that keep contexts apart (§5.4).
    strategy: Literal["two-step", "random", "no-diversity"] = "two-step"
    size: Annotated[int, Field(ge=1)] = 500  # contexts in a set, |C_s| (paper: 500)
    # Chunks to retrieve for a sentence (paper: 20,000). In a small corpus only the first have more
    # than a common word with it; there a few times `size` does better.
    chunks: Annotated[int, Field(ge=1)] = 20_000
    # Contexts that pass from the ranking by coherence to that by Eq. 3, as a multiple of `size`,
    # spread evenly over the chunks since one of a chunk is chosen; 1 leaves the choice to
    # coherence. The paper does not say.
    candidates: Annotated[float, Field(ge=1)] = 4.0
    # Jaccard similarity from which two left neighbours are too much alike.
    likeness: Annotated[float, Field(gt=0, le=1)] = LIKENESS
    seed: Annotated[int, Field(ge=0)] = 0  # of random contexts


@dataclass(frozen=True, eq=False)
class ContextSet:
    """The contexts of one sentence, best first."""

    centres: IntArray  # (k,)
    terms: Mapping[str, FloatArray]  # of the sentence in them, each (k,)
    own: IntArray  # (j,), where the sentence itself stands in the corpus
    random: bool  # because no chunk shares a word with the sentence


@dataclass(frozen=True, eq=False)
class ContextSelector:
    """Makes the context sets of sentences."""

    corpus: Corpus
    index: TfidfIndex
    scorer: TermScorer
    selection: Selection
    weights: Weights

    def select(self, sentences: Sequence[str]) -> list[ContextSet]:
        """Chooses the contexts of each sentence."""
        if self.selection.strategy == "random":
            own = [np.zeros(0, np.int64)] * len(sentences)  # few would be from where it stands
            pools = list(map(self._random, sentences, own))
            without = [False] * len(sentences)
        else:
            pools, own = self._retrieved(sentences)
            without = [not len(pool) for pool in pools]
            pools = self._most_coherent(sentences, pools)
            for place in np.flatnonzero(without).tolist():
                pools[place] = self._random(sentences[place], own[place])
        sets = []
        found = self.scorer.terms(sentences, pools, self.weights.used)
        for pool, terms, rows, random in zip(pools, found, own, without, strict=True):
            order: Any = slice(None)
            if self.selection.strategy != "random" and not random:
                order = self._best(pool, terms)
            chosen = {name: values[order] for name, values in terms.items()}
            sets.append(ContextSet(pool[order], chosen, rows, random))
        return sets

    def _retrieved(self, sentences: Sequence[str]) -> tuple[list[IntArray], list[IntArray]]:
        """The contexts of retrieved chunks that are far from the sentence, and where it stands."""
        pools, own = [], []
        found = self.index.search(sentences, top_n=self.selection.chunks)
        for sentence, (chunks, _) in zip(sentences, found, strict=True):
            pool, rows = chunk_rows(chunks, self.corpus), own_rows(sentence, chunks, self.corpus)
            pools.append(pool[far_from(rows, pool)])
            own.append(rows)
        return pools, own

    def _random(self, sentence: str, own: IntArray) -> IntArray:
        """Centres drawn for a sentence, far from where it stands and whatever the others are."""
        digest = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()
        random = np.random.default_rng([self.selection.seed, int.from_bytes(digest[:8], "big")])
        centres = np.flatnonzero(self.corpus.has_context)
        centres = centres[far_from(own, centres)]
        size = min(self.selection.size, len(centres))
        return random.choice(centres, size=size, replace=False).astype(np.int64)

    def _most_coherent(self, sentences: Sequence[str], pools: Sequence[IntArray]) -> list[IntArray]:
        """Keeps the most coherent contexts, best first; as retrieved if coherence is unused."""
        if "coherence" in self.weights.used:
            found = self.scorer.terms(sentences, pools, ("coherence",))
            pools = [
                pool[_descending(terms["coherence"])]
                for pool, terms in zip(pools, found, strict=True)
            ]
        count = round(self.selection.candidates * self.selection.size)
        kept = []
        for pool in pools:
            if self.selection.strategy == "two-step" and len(pool):
                chunks = self.corpus.chunk_of(pool)  # one of each is chosen in the end
                most = math.ceil(count / len(np.unique(chunks)))
                pool = pool[_rank_in_group(chunks) < most]
            kept.append(pool[:count])
        return kept

    def _best(self, pool: IntArray, terms: Mapping[str, FloatArray]) -> IntArray:
        """Places of the best candidates by Eq. 3, chosen one at a time."""
        order = _descending(context_scores(terms, self.weights))
        if self.selection.strategy == "two-step":
            ordered = pool[order]
            before = self.corpus.neighbours(ordered, left=1, right=0)[:, 0]
            nearest = np.full(len(ordered), "", dtype=object)
            nearest[before >= 0] = self.corpus.sentences(before[before >= 0])
            size, likeness = self.selection.size, self.selection.likeness
            chunks = self.corpus.chunk_of(ordered)
            order = order[diverse(chunks, nearest.tolist(), count=size, likeness=likeness)]
        return order[: self.selection.size]


def _rank_in_group(groups: IntArray) -> IntArray:
    """How many of the same group stand before each, ``(k,)``."""
    order = np.argsort(groups, kind="stable")
    sizes = np.diff(np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1)))
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _descending(scores: FloatArray) -> IntArray:
    """Places by score, best first; ties in their order, NaN last."""
    return np.argsort(-scores, kind="stable")


@dataclass(frozen=True)
class Cost:
    """The work of scoring pairs."""

    pairs: int
    contexts: int  # of each pair, C_s1 and C_s2 together
    models: int  # terms of Eq. 3 that a generator computes
    # Targets that generators score: for the choice of contexts, for each sentence in the other's
    # contexts, and for the means that centring takes off.
    sequences: int
    tokens: int  # of these sequences, about
    seconds: float | None = None  # from a few that were timed; None if it was not measured

    def __str__(self) -> str:
        text = (
            f"{self.pairs:,} pairs x {self.contexts:,} contexts x {self.models} generators: about "
            f"{self.sequences:,} sequences of {self.tokens:,} tokens in all"
        )
        return text if self.seconds is None else f"{text}, about {_duration(self.seconds)}"


_TOKENS = 25.0  # of a target, about


def cost_of(
    *, sentences: int, pairs: int, corpus: int, selection: Selection, scoring: ScoringSettings
) -> Cost:
    """Counts the work of scoring pairs.

    Args:
        sentences: Distinct sentences among the pairs.
        corpus: Sentences of the corpus, which bounds the contexts there are.
        scoring: Weights, centring and references; terms of weight 0 cost nothing.

    Returns:
        The cost, without a time.
    """
    generated = set(scoring.weights.used) - {"coherence"}
    models = len(generated)
    chosen_from = selection.size
    if selection.strategy != "random":
        chosen_from = round(selection.candidates * selection.size)
    choice = sentences * min(chosen_from, corpus)
    crosswise = 2 * pairs * min(selection.size, corpus)
    of_contexts = scoring.references * min(sentences * selection.size, corpus)
    means = {"none": 0, "context": models * of_contexts}
    sides = len(generated - {"centre"})
    means["pmi"] = sides * of_contexts + (models - sides) * scoring.references * sentences
    sequences = models * (choice + crosswise) + means[scoring.center]
    return Cost(
        pairs=pairs,
        contexts=2 * min(selection.size, corpus),
        models=models,
        sequences=sequences,
        tokens=round(sequences * _TOKENS),
    )


def expected_distinct(draws: int, *, of: int) -> int:
    """How many different ones there are among some drawn at random, on average.

    Returns:
        ``of * (1 - (1 - 1 / of) ** draws)``, rounded.

    Examples:
        >>> expected_distinct(400, of=300), expected_distinct(400, of=1_000_000)
        (221, 400)
    """
    return round(-of * math.expm1(draws * math.log1p(-1 / of))) if of > 1 else min(draws, of)


def _duration(seconds: float) -> str:
    """Says a time in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
