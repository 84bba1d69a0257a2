"""The first stage of a search: stored vectors, compared with one of the query by dot product."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from condsim.model.embedding import EmbeddingScorer
from condsim.search.records import NUMBER, VECTOR
from condsim.search.store import Store
from condsim.types import FloatArray, IntArray

Sample = tuple[Sequence[str], FloatArray]
"""Texts and their stored vectors, ``(n, d)``."""

_RIDGE = 0.2  # for a sample of a thousand texts
_PLAIN = 0.5  # share of the plain query, the learned one having 1
_MAPS = 32  # conditions whose map is kept
_LEAST = 1e-6
_NOISE = 0.1  # of scores about their regression, whose variance is 1
_WIDTH = 0.5  # of the regression's kernel, a difference of cosines
_BLOCK = 65_536  # vectors searched by one thread
_PART = 8_192  # vectors of a block converted at a time
_MOST = 1 << 30  # bytes of vectors kept in memory; more are read anew for every search


class FirstStage:
    """Embeddings without a condition, and for each condition a linear map learned from a sample.

    With v the embedding of a text without the condition and u that under it, ridge regression on
    the sample gives ``u = v W + b``. But for a constant, the cosine of u with the query's q is then
    ``v . W q``: one vector to compare all stored ones with, whatever the condition. Texts alike as
    a whole are often alike in a respect too, so the plain query has a share in that vector.
    """

    name = "plain"
    """What is stored; kept with the index."""

    def __init__(self, scorer: EmbeddingScorer) -> None:
        """Takes the model."""
        self._scorer = scorer
        self._maps: dict[str, _Map] = {}

    def query(
        self, text: str, condition: str, sample: Callable[[], Sample]
    ) -> tuple[FloatArray, FloatArray]:
        """Gives the vector whose dot product with a stored one ranks the texts, and the map W.

        Args:
            sample: Draws texts from those stored; called when the condition is new.

        Returns:
            The vector, ``(d,)``, and the map, ``(d, d)``.
        """
        learned = self._maps.get(condition)
        if learned is None:
            learned = self._learn(condition, *sample())
            self._maps = {**dict(list(self._maps.items())[1 - _MAPS :]), condition: learned}
        plain, under = self._scorer.encode(text), self._scorer.encode(text, condition)
        vector = learned.scaled(learned.weights @ under) + _PLAIN * learned.scaled(plain)
        return vector, learned.weights

    def _learn(self, condition: str, texts: Sequence[str], vectors: FloatArray) -> _Map:
        centred = vectors - vectors.mean(axis=0)
        under = self._scorer.encode(texts, condition)
        covariance = centred.T @ centred + _RIDGE * np.eye(vectors.shape[1], dtype=np.float32)
        weights = np.linalg.solve(covariance, centred.T @ (under - under.mean(axis=0)))
        return _Map(weights.astype(np.float32), vectors)


def mapped_vectors(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """What the map W, ``(d, d)``, makes of stored vectors: of length 1, ``(n, d)``."""
    mapped = vectors @ weights
    mapped /= np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), _LEAST)
    return mapped


def expected(
    near: FloatArray, mapped: FloatArray, scored: IntArray, scores: FloatArray
) -> FloatArray:
    """Guesses the scores of all n texts, ``(n,)``, from m of them: Gaussian process regression."""
    # The mean is a straight line in the first stage's dot products, ``near``; the rest is regressed
    # with the kernel ``exp((cosine - 1) / width)`` of ``mapped``, vectors of length 1, (n, d), so
    # that texts near to good ones are scored next.
    known = near[scored] - near[scored].mean()
    slope = known @ (scores - scores.mean()) / max(float(known @ known), _LEAST)
    line = scores.mean() + slope * (near - near[scored].mean())
    kernel = np.exp((mapped @ mapped[scored].T - 1) / _WIDTH)  # (n, m)
    noisy = kernel[scored] + _NOISE * np.eye(len(scored), dtype=np.float32)
    guess: FloatArray = line + kernel @ np.linalg.solve(noisy, scores - line[scored])
    return guess


@dataclass(frozen=True, eq=False)
class _Map:
    """The map W of a condition, ``(d, d)``, and the vectors it was learned from, ``(n, d)``."""

    weights: FloatArray
    vectors: FloatArray

    def scaled(self, asked: FloatArray) -> FloatArray:
        """Scales a vector so that its dot products have a standard deviation of 1."""
        return asked / max(float((self.vectors @ asked).std()), _LEAST)


class _Block:
    """Numbers of rows, ``(m,)``, and their vectors, in the number format that faiss compares."""

    def __init__(self, numbers: IntArray, vectors: NDArray[np.float16], *, exact: bool) -> None:
        kinds = faiss.ScalarQuantizer
        kind = kinds.QT_fp16 if exact else kinds.QT_8bit
        index: Any = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        if exact:
            index.is_trained = True  # float16 needs no training
            index.add_sa_codes(vectors.view(np.uint8))
        else:
            for start in range(0, len(vectors), _PART):
                part = vectors[start : start + _PART].astype(np.float32)
                if not start:
                    index.train(part)  # finds the range of each dimension
                index.add(part)
        self.numbers = numbers
        self.vectors = index

    def best(self, asked: FloatArray, top: int, allowed: IntArray | None) -> _Found:
        """The best rows of the block, best first."""
        chosen, rows = None, len(self.numbers)
        if allowed is not None:
            mask = np.isin(self.numbers, allowed, assume_unique=True)
            rows = int(mask.sum())
            bits = np.packbits(mask, bitorder="little")
            library: Any = faiss  # its stubs know C++ only
            chosen = library.SearchParameters(sel=library.IDSelectorBitmap(bits))
        if not rows:
            return _NONE
        scores, places = self.vectors.search(asked[None], min(top, rows), params=chosen)
        return _Found(self.numbers[places[0]], scores[0], places[0])


class _Found(NamedTuple):
    """Rows: their numbers, their scores and their places in a block, ``(n,)`` each."""

    numbers: IntArray
    scores: FloatArray
    places: IntArray


_NONE = _Found(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.int64))


class Vectors:
    """The vectors of a table, searched exhaustively; kept in memory where they are few enough."""

    def __init__(self, store: Store, table: str, *, exact: bool) -> None:
        """Reads nothing yet; unless ``exact``, bytes stand for float16 in memory."""
        self._store = store
        self._table = table
        self._exact = exact
        self._kept: list[_Block] | None = None
        self._version: int | None = None

    def best(
        self, asked: FloatArray, top: int, *, allowed: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Finds the ``top`` rows of highest dot products with a vector; of equal ones the first."""
        # Only ``allowed`` numbers, sorted, are looked at, or all.
        found = self._found(asked, top, allowed)[0]
        return found.numbers, found.scores

    def best_vectors(
        self, asked: FloatArray, top: int, *, allowed: IntArray | None = None
    ) -> tuple[IntArray, FloatArray | None]:
        """As `best`, with the vectors, ``(n, d)``, or None where they are not kept in memory."""
        found, blocks = self._found(asked, top, allowed)
        if self._kept is None:
            return found.numbers, None
        vectors = np.empty((len(blocks), len(asked)), np.float32)
        for number in np.unique(blocks).tolist():
            chosen = blocks == number
            vectors[chosen] = self._kept[number].vectors.reconstruct_batch(found.places[chosen])
        return found.numbers, vectors

    def _found(
        self, asked: FloatArray, top: int, allowed: IntArray | None
    ) -> tuple[_Found, IntArray]:
        """The best rows, and the block of each."""
        asked = np.ascontiguousarray(asked, np.float32)
        blocks, found = self._blocks(), list[_Found]()
        threads = _processors()
        with ThreadPoolExecutor(threads) as pool:
            while some := list(islice(blocks, threads)):  # no more are in memory at once
                found += pool.map(lambda block: block.best(asked, top, allowed), some)
        block_of = np.repeat(np.arange(len(found)), [len(part.numbers) for part in found])
        joined = _Found(*map(np.concatenate, zip(_NONE, *found, strict=True)))
        order = np.lexsort((joined.numbers, -joined.scores))[:top]
        best = _Found(joined.numbers[order], joined.scores[order], joined.places[order])
        return best, block_of[order]

    def _blocks(self) -> Iterator[_Block]:
        table = self._store.table(self._table)
        if self._kept is not None and self._version == table.version:
            yield from self._kept
            return
        self._kept, self._version = None, table.version
        width = (1 + self._exact) * table.schema.field(VECTOR).type.list_size
        kept: list[_Block] | None = [] if table.count_rows() * width <= _MOST else None
        for block in (_Block(*part, exact=self._exact) for part in self.read()):
            if kept is not None:
                kept.append(block)
            yield block
        self._kept = kept

    def read(self) -> Iterator[tuple[IntArray, NDArray[np.float16]]]:
        """Reads the table in blocks: numbers of rows, ``(m,)``, and vectors, ``(m, d)``."""
        table = self._store.table(self._table)
        dimension, rows = table.schema.field(VECTOR).type.list_size, table.count_rows()
        numbers, vectors = np.empty(0, np.int64), np.empty((0, dimension), np.float16)
        filled = 0
        with self._store.told("read"):
            for batch in table.search().select([NUMBER, VECTOR]).to_batches(batch_size=8192):
                done = 0
                while done < len(batch):
                    if not filled:  # of the right size from the start: growing would take twice it
                        size = min(_BLOCK, rows)
                        numbers = np.empty(size, np.int64)
                        vectors = np.empty((size, dimension), np.float16)
                    some = batch.slice(done, len(numbers) - filled)
                    stop = filled + len(some)
                    numbers[filled:stop] = some[NUMBER].to_numpy()
                    vectors[filled:stop] = some[VECTOR].flatten().to_numpy().reshape(-1, dimension)
                    done, filled = done + len(some), stop
                    if filled == len(numbers):
                        rows, filled = rows - filled, 0
                        yield numbers, vectors


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
