"""Drawing the sentence pairs of a harvest: alike, near each other, or any two (READING.md, §3.4).

The paper scores 100 M pairs and does not say how they are drawn. Random pairs alone are nearly all
unlike, so a surrogate would see no alike ones; hence a mix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.index import TfidfIndex
from condsim.contexts.scoring import Places, Retriever, chunk_rows
from condsim.errors import InputError
from condsim.types import BoolArray, FloatArray, IntArray

_FOLDER = "lone"
_BLOCK = 10_000  # sentences read at once


class LoneSentences:
    """What an index of them is built of: each is a chunk of its own.

    Attributes:
        revision: That of the corpus.
    """

    def __init__(self, corpus: Places) -> None:
        self.revision = corpus.revision
        self._corpus = corpus
        self._rows = lone_rows(corpus)

    def __len__(self) -> int:
        return len(self._rows)

    def chunk_texts(self) -> Iterator[str]:
        """Reads them."""
        for start in range(0, len(self._rows), _BLOCK):
            yield from self._corpus.sentences(self._rows[start : start + _BLOCK])


def lone_rows(corpus: Places) -> IntArray:
    """Finds the documents of one sentence.

    Returns:
        Their rows; that of chunk i of `LoneSentences` is the i-th, ``(k,)``.
    """
    return np.flatnonzero(~corpus.has_context)


def build_lone_index(corpus: Places, index: Path, *, min_df: int) -> TfidfIndex | None:
    """Builds their index, or opens it where it is built already."""
    texts = LoneSentences(corpus)
    if len(texts) < 2:
        return None
    return TfidfIndex.build(texts, index / _FOLDER, min_df=min_df, may_be_empty=True)


def open_lone_index(corpus: Places, index: Path) -> TfidfIndex | None:
    """Opens their index."""
    return TfidfIndex.open(index / _FOLDER) if len(lone_rows(corpus)) > 1 else None


Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
KINDS = ("tfidf", "document", "random")

_NEAR = 10  # sentences; how far apart two of one document may be
_CHUNKS = 20  # the best chunks that a partner is taken from
_ALIKE = 10  # the sentences most like the first among these, of which one is drawn
_LONE = 200  # as many documents of one sentence as there are sentences in those chunks
_WIDER = 10  # as far, and as many chunks, for dev and test, of whose sentences few are at hand
_HUNDRED = 100  # of so many pairs one is a dev pair, and one a test pair
_DEV, _TEST = 49, 99  # their places among the hundred
_FEW = 10  # sentences of the dev and of the test split at least, if that is a tenth at most


class SentenceIndex(Retriever, Protocol):
    """What finds sentences that are alike."""

    def likeness(self, sentence: str, others: Sequence[str]) -> FloatArray:
        """Cosines of TF-IDF vectors of a sentence and others, ``(n,)``."""


@dataclass(frozen=True)
class PairMix:
    """Shares of the three kinds of pairs.

    Attributes:
        tfidf: The partner is one of the ten sentences of the best chunks that are most like the
            first sentence by TF-IDF, with a word in common. Of a document of one sentence, which is
            in no chunk that is found, it is one of the ten other such documents most like it.
        document: The partner stands at most ten sentences away in the same document (a hundred in
            dev and test, where a partner of the same split is rare).
        random: The partner is any sentence.
    """

    tfidf: float = 0.4
    document: float = 0.3
    random: float = 0.3

    def __post_init__(self) -> None:
        """Checks that the shares are shares."""
        shares = self.values
        if (shares < 0).any() or abs(shares.sum() - 1) > 1e-6:
            raise InputError(
                "The shares of pairs (tfidf, document, random) must be at least 0 and add up to "
                f"1. Got {', '.join(f'{share:g}' for share in shares)}."
            )

    @property
    def values(self) -> NDArray[np.float64]:
        """The shares in the order of `KINDS`, ``(3,)``."""
        return np.array([self.tfidf, self.document, self.random], np.float64)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Pairs of sentences of the corpus.

    Attributes:
        first: Id of the first sentence of each pair, ``(n,)``.
        second: Id of the second, ``(n,)``; of the same split.
        kinds: Place of the kind in `KINDS`, ``(n,)``. A pair whose kind offered no partner of its
            split is random instead.
        splits: Place of the split in `SPLITS`, ``(n,)``.
    """

    first: IntArray
    second: IntArray
    kinds: NDArray[np.int8]
    splits: NDArray[np.int8]


def splits_of(corpus: Places) -> NDArray[np.int8]:
    """Tells the split of every sentence, by its text: 98 % train, 1 % dev, 1 % test.

    A sentence's text decides, so one that is repeated is in one split. In a corpus of less than
    1,000 sentences dev and test have ten each, but no more than a tenth: with less there would be
    no pairs to judge a model on.

    Returns:
        Places in `SPLITS`, ``(n,)``.
    """
    count = max(round(len(corpus) / _HUNDRED), min(_FEW, len(corpus) // _FEW))
    if count < 2:
        raise InputError(
            "A harvest needs 20 sentences or more, so that dev and test have two each. This corpus "
            f"has {len(corpus)}; take a larger one."
        )
    hashes = np.zeros(len(corpus), np.uint64)
    for start in range(0, len(corpus), 100_000):
        ids = np.arange(start, min(start + 100_000, len(corpus)), dtype=np.int64)
        hashes[ids] = [_hash(sentence) for sentence in corpus.sentences(ids)]
    lowest = np.partition(hashes, [count - 1, 2 * count - 1])
    splits = np.full(len(corpus), SPLITS.index("train"), np.int8)
    splits[hashes <= lowest[2 * count - 1]] = SPLITS.index("test")
    splits[hashes <= lowest[count - 1]] = SPLITS.index("dev")
    return splits


class PairDrawer:
    """Draws pairs by their numbers: the same ones whoever draws them."""

    def __init__(
        self,
        corpus: Places,
        index: SentenceIndex,
        lone_index: SentenceIndex | None = None,
        *,
        mix: PairMix | None = None,
        seed: int = 0,
    ) -> None:
        self._corpus, self._index, self._lone_index = corpus, index, lone_index
        self._lone = np.zeros(0, np.int64) if lone_index is None else lone_rows(corpus)
        self._mix = mix or PairMix()
        self._seed = seed
        self._splits = splits_of(corpus)
        self._ids = [np.flatnonzero(self._splits == split) for split in range(len(SPLITS))]

    def draw(self, start: int, count: int) -> Drawn:
        """Draws some pairs."""
        random = np.random.default_rng([self._seed, start])
        numbers = np.arange(start, start + count) % _HUNDRED
        splits = np.full(count, SPLITS.index("train"), np.int8)
        splits[numbers == _DEV] = SPLITS.index("dev")
        splits[numbers == _TEST] = SPLITS.index("test")
        kinds = random.choice(len(KINDS), size=count, p=self._mix.values).astype(np.int8)
        first = np.array([random.choice(self._ids[split]) for split in splits], np.int64)
        second = np.full(count, -1, np.int64)
        for rare in (False, True):
            places = (splits != SPLITS.index("train")) == rare
            self._draw_tfidf(first, second, places & (kinds == KINDS.index("tfidf")), rare, random)
            self._draw_near(
                first, second, places & (kinds == KINDS.index("document")), rare, random
            )
        kinds[second < 0] = KINDS.index("random")
        self._draw_random(first, second, splits, random)
        ordered = np.sort(np.stack([first, second]), axis=0)
        _, kept = np.unique(ordered, axis=1, return_index=True)
        kept.sort()
        return Drawn(first[kept], second[kept], kinds[kept], splits[kept])

    def _draw_tfidf(
        self,
        first: IntArray,
        second: IntArray,
        chosen: BoolArray,
        rare: bool,
        random: np.random.Generator,
    ) -> None:
        alone = np.isin(first, self._lone)
        self._draw_alike(first, second, chosen & ~alone, self._index, rare, random)
        if self._lone_index is not None:
            self._draw_alike(first, second, chosen & alone, self._lone_index, rare, random)

    def _draw_alike(
        self,
        first: IntArray,
        second: IntArray,
        chosen: BoolArray,
        index: SentenceIndex,
        rare: bool,
        random: np.random.Generator,
    ) -> None:
        places = np.flatnonzero(chosen)
        texts = self._corpus.sentences(first[places])
        alone = index is self._lone_index
        found = index.search(texts, top_n=(_LONE if alone else _CHUNKS) * (_WIDER if rare else 1))
        for place, text, (chunks, _) in zip(places, texts, found, strict=True):
            rows = self._lone[chunks] if alone else chunk_rows(chunks, self._corpus)
            ids = self._others(first[place], rows)
            likeness = index.likeness(text, self._corpus.sentences(ids))
            best = np.argsort(-likeness, kind="stable")[:_ALIKE]
            second[place] = _any_of(ids[best[likeness[best] > 0]], random)

    def _draw_near(
        self,
        first: IntArray,
        second: IntArray,
        chosen: BoolArray,
        rare: bool,
        random: np.random.Generator,
    ) -> None:
        places = np.flatnonzero(chosen)
        reach = _NEAR * (_WIDER if rare else 1)
        around = self._corpus.neighbours(first[places], left=reach, right=reach)
        for place, near in zip(places, around, strict=True):
            second[place] = _any_of(self._others(first[place], near[near >= 0]), random)

    def _draw_random(
        self,
        first: IntArray,
        second: IntArray,
        splits: NDArray[np.int8],
        random: np.random.Generator,
    ) -> None:
        for place in np.flatnonzero(second < 0):
            ids = self._ids[splits[place]]
            some = random.choice(ids, size=2, replace=False)  # one of them is another sentence
            second[place] = _any_of(self._others(first[place], some), random)

    def _others(self, first: np.int64, ids: IntArray) -> IntArray:
        """Those of some sentences that are of the same split, and another one."""
        others: IntArray = ids[(self._splits[ids] == self._splits[first]) & (ids != first)]
        return others


def _any_of(ids: IntArray, random: np.random.Generator) -> int:
    """One of some sentences; -1 if there is none."""
    return int(random.choice(ids)) if len(ids) else -1


def _hash(sentence: str) -> int:
    """A number that the words of a sentence decide; case and white space do not count."""
    text = " ".join(sentence.casefold().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
