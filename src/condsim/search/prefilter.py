"""The first stage of a search: dot products of the query with stored vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from condsim.model.embedding import EmbeddingScorer
from condsim.model.session import available_processors
from condsim.search.records import NUMBER, VECTOR
from condsim.search.store import Store
from condsim.types import BoolArray, FloatArray, IntArray

Sample = tuple[Sequence[str], FloatArray]
"""Texts and their stored vectors, ``(n, d)``."""

# Chosen for a sample of a thousand texts.
_RIDGE = 0.2
# Weight of the plain query; the learned one has 1.
_PLAIN_WEIGHT = 0.5
_CACHED_MAPS = 32
_EPSILON = 1e-6
# Variance of scores about their regression, relative to the variance of the scores.
_SCORE_NOISE = 0.1
# Width of the regression's kernel, a difference of cosines.
_KERNEL_WIDTH = 0.5
_VECTORS_PER_BLOCK = 65_536
_VECTORS_PER_CONVERSION = 8_192
# After more new rows than these, all are read again.
_MAX_NEW_ROWS = 10_000
# More bytes of vectors than this are read again for every search.
_MAX_CACHED_BYTES = 1 << 30


class Prefilter:
    """Embeddings without a condition, and for each condition a linear map learned from a sample.

    With v the embedding of a text without the condition and u that under it, ridge regression on
    the sample gives ``u = v W + b``. But for a constant, the cosine of u with the query's q is then
    ``v . W q``: one vector to compare all stored ones with, whatever the condition. Texts alike as
    a whole are often alike in a respect too, so the plain query has a share in that vector.
    """

    name = "plain"
    """What is stored; saved with the index."""

    def __init__(self, scorer: EmbeddingScorer, store: Store) -> None:
        self._scorer = scorer
        self._store = store
        self._maps: dict[str, _ConditionMap] = {}

    def query(
        self, plain: FloatArray, under: FloatArray, condition: str, sample: Callable[[], Sample]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the vector whose dot product with a stored one ranks the texts, and the map W.

        The embeddings of the query without and under the condition are ``(d,)``. Stored texts are
        drawn from ``sample`` when the condition is new.
        """
        learned = self._maps.get(condition)
        if learned is None:
            learned = self._kept(condition) or self._learn(condition, *sample())
            recent = list(self._maps.items())[1 - _CACHED_MAPS :]
            self._maps = {**dict(recent), condition: learned}
        vector = learned.scaled(learned.weights @ under) + _PLAIN_WEIGHT * learned.scaled(plain)
        return vector, learned.weights

    def _learn(self, condition: str, texts: Sequence[str], vectors: FloatArray) -> _ConditionMap:
        centered = vectors - vectors.mean(axis=0)
        under = self._scorer.encode(texts, condition)
        covariance = centered.T @ centered + _RIDGE * np.eye(vectors.shape[1], dtype=np.float32)
        weights = np.linalg.solve(covariance, centered.T @ (under - under.mean(axis=0)))
        covariance = np.cov(vectors, rowvar=False, bias=True)
        learned = _ConditionMap(weights.astype(np.float32), covariance.astype(np.float32))
        # A criterion of the same name may be learned again.
        if condition not in self._scorer.criteria:
            self._store.save_map(condition, np.stack([learned.weights, learned.covariance]))
        return learned

    def _kept(self, condition: str) -> _ConditionMap | None:
        """Return the map that an earlier search has learned and kept with the index."""
        if condition in self._scorer.criteria:
            return None
        stored = self._store.find_map(condition)
        return None if stored is None else _ConditionMap(stored[0], stored[1])


def map_vectors(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """Apply the map W, ``(d, e)``, to stored vectors: unit vectors, ``(n, e)``."""
    mapped = vectors @ weights
    mapped /= np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), _EPSILON)
    return mapped


def predict_scores(
    near: FloatArray, mapped: FloatArray, scored: IntArray, scores: FloatArray
) -> FloatArray:
    """Predict the scores of all n texts, ``(n,)``, from m of them by Gaussian process regression.

    The mean is a straight line in ``near``, the first stage's dot products, ``(n,)``. The rest is
    regressed with the kernel ``exp((cosine - 1) / width)`` of the unit vectors ``mapped``, so that
    texts near to good ones are scored next.
    """
    centered = near[scored] - near[scored].mean()
    slope = centered @ (scores - scores.mean()) / max(float(centered @ centered), _EPSILON)
    line = scores.mean() + slope * (near - near[scored].mean())
    kernel = np.exp((mapped @ mapped[scored].T - 1) / _KERNEL_WIDTH)  # (n, m)
    noisy = kernel[scored] + _SCORE_NOISE * np.eye(len(scored), dtype=np.float32)
    predicted: FloatArray = line + kernel @ np.linalg.solve(noisy, scores - line[scored])
    return predicted


@dataclass(frozen=True, eq=False)
class _ConditionMap:
    """The map W of a condition, ``(d, e)``, and the covariance of stored vectors, ``(d, d)``."""

    weights: FloatArray
    covariance: FloatArray

    def scaled(self, query: FloatArray) -> FloatArray:
        """Scale a vector so that its dot products have a standard deviation of 1."""
        variance = float(query @ self.covariance @ query)
        return query / max(math.sqrt(max(variance, 0.0)), _EPSILON)


class _Matches(NamedTuple):
    """Rows: their numbers, their scores and their positions in a block, ``(n,)`` each."""

    numbers: IntArray
    scores: FloatArray
    positions: IntArray


_NO_MATCHES = _Matches(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.int64))


class _Block:
    """Numbers of rows, ``(m,)``, and their vectors, in the number format that faiss compares."""

    alive: BoolArray | None = None
    """Which rows are still there, ``(m,)``; None for all."""

    def __init__(
        self, numbers: IntArray, ids: IntArray, vectors: NDArray[np.float16], *, exact: bool
    ) -> None:
        kinds = faiss.ScalarQuantizer
        kind = kinds.QT_fp16 if exact else kinds.QT_8bit
        index: Any = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        if exact:
            # Float16 needs no training.
            index.is_trained = True
            index.add_sa_codes(vectors.view(np.uint8))
        else:
            for start in range(0, len(vectors), _VECTORS_PER_CONVERSION):
                part = vectors[start : start + _VECTORS_PER_CONVERSION].astype(np.float32)
                if not start:
                    # The first part is enough to find the range of each dimension.
                    index.train(part)
                index.add(part)
        self.numbers, self.ids = numbers, ids
        self.vectors, self.exact = index, exact

    def present(self) -> IntArray:
        """Positions of the rows that are still there."""
        return np.arange(len(self.ids)) if self.alive is None else np.flatnonzero(self.alive)

    def without(self, ids: IntArray) -> _Block:
        """Return the block without the rows of some ids."""
        gone = np.isin(self.ids, ids, assume_unique=True)
        if not gone.any():
            return self
        kept = copy(self)
        kept.alive = ~gone if self.alive is None else self.alive & ~gone
        return kept

    def extended(self, numbers: IntArray, ids: IntArray, vectors: NDArray[np.float16]) -> _Block:
        """Return a block of the rows that are still there, and of more."""
        alive = self.present()
        own = self.vectors.reconstruct_batch(alive).astype(np.float16)
        return _Block(
            np.append(self.numbers[alive], numbers),
            np.append(self.ids[alive], ids),
            np.concatenate([own, vectors]),
            exact=True,
        )

    def best(self, query: FloatArray, top: int, allowed: IntArray | None) -> _Matches:
        """Return the best rows of the block, best first."""
        parameters, rows, mask = None, len(self.numbers), self.alive
        if allowed is not None:
            mask = np.isin(self.numbers, allowed, assume_unique=True) & (
                True if mask is None else mask
            )
        if mask is not None:
            rows = int(mask.sum())
            bits = np.packbits(mask, bitorder="little")
            # The stubs of faiss describe C++ only.
            library: Any = faiss
            parameters = library.SearchParameters(sel=library.IDSelectorBitmap(bits))
        if not rows:
            return _NO_MATCHES
        scores, positions = self.vectors.search(query[None], min(top, rows), params=parameters)
        return _Matches(self.numbers[positions[0]], scores[0], positions[0])


class VectorTable:
    """The vectors of a table, searched exhaustively; cached in memory where they are few enough."""

    def __init__(self, store: Store, table: str, *, exact: bool) -> None:
        """Read nothing yet; unless ``exact``, one byte a number replaces float16 in memory."""
        self._store = store
        self._table = table
        self._exact = exact
        self._cached: list[_Block] | None = None
        self._version: int | None = None

    def best(
        self, query: FloatArray, top: int, *, allowed: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Find the ``top`` rows of highest dot products among those allowed, sorted by number."""
        matches = self._matches(query, top, allowed)[0]
        return matches.numbers, matches.scores

    def best_vectors(
        self, query: FloatArray, top: int, *, allowed: IntArray | None = None
    ) -> tuple[IntArray, FloatArray | None]:
        """As `best`, with the vectors, ``(n, d)``, or None where they are not in memory."""
        matches, blocks = self._matches(query, top, allowed)
        if self._cached is None:
            return matches.numbers, None
        vectors = np.empty((len(blocks), len(query)), np.float32)
        for number in np.unique(blocks).tolist():
            chosen = blocks == number
            block = self._cached[number].vectors
            vectors[chosen] = block.reconstruct_batch(matches.positions[chosen])
        return matches.numbers, vectors

    def _matches(
        self, query: FloatArray, top: int, allowed: IntArray | None
    ) -> tuple[_Matches, IntArray]:
        """Return the best rows, and the block of each."""
        query = np.ascontiguousarray(query, np.float32)
        blocks, parts = self._blocks(), list[_Matches]()
        threads = available_processors()
        with ThreadPoolExecutor(threads) as pool:
            # No more blocks than threads are in memory at once.
            while batch := list(islice(blocks, threads)):
                parts += pool.map(lambda block: block.best(query, top, allowed), batch)
        block_of = np.repeat(np.arange(len(parts)), [len(part.numbers) for part in parts])
        joined = _Matches(*map(np.concatenate, zip(_NO_MATCHES, *parts, strict=True)))
        order = np.lexsort((joined.numbers, -joined.scores))[:top]
        best = _Matches(joined.numbers[order], joined.scores[order], joined.positions[order])
        return best, block_of[order]

    def _blocks(self) -> Iterator[_Block]:
        table = self._store.table(self._table)
        if self._cached is not None and self._version == table.version:
            yield from self._cached
            return
        width = (1 + self._exact) * table.schema.field(VECTOR).type.list_size
        fits = table.count_rows() * width <= _MAX_CACHED_BYTES
        changed = self._changed(self._cached) if self._cached and fits else None
        self._cached, self._version = changed, table.version
        if changed:
            yield from changed
            return
        all_numbers, all_ids = self._store.row_ids(self._table)
        cache: list[_Block] | None = [] if fits else None
        for numbers, vectors in self.read():
            ids = all_ids[np.searchsorted(all_numbers, numbers)]
            block = _Block(numbers, ids, vectors, exact=self._exact)
            if cache is not None:
                cache.append(block)
            yield block
        self._cached = cache

    def _changed(self, blocks: Sequence[_Block]) -> list[_Block] | None:
        """Read only the rows that were added; None if they are many, so that all are read."""
        all_numbers, all_ids = self._store.row_ids(self._table)
        known = np.concatenate([block.ids[block.present()] for block in blocks])
        # Unless they are said to be unique, NumPy hashes them, which takes seconds.
        new = np.setdiff1d(all_ids, known, assume_unique=True)
        # Rows that are gone stay in memory until all are read again.
        held = sum(len(block.ids) for block in blocks)
        if len(new) > _MAX_NEW_ROWS or held > 2 * len(all_ids):
            return None
        if len(known) + len(new) > len(all_ids):
            gone = np.setdiff1d(known, all_ids, assume_unique=True)
            blocks = [block.without(gone) for block in blocks]
        if not len(new):
            return list(blocks)
        *kept, last = blocks
        query = self._store.table(self._table).take_row_ids(new.tolist())
        with self._store.errors("read"):
            rows = query.select([NUMBER, VECTOR]).to_arrow()
        numbers = rows[NUMBER].to_numpy()
        ids = all_ids[np.searchsorted(all_numbers, numbers)]
        vectors = np.array(rows[VECTOR].to_pylist(), np.float16)
        # The range of a dimension is unknown for a few rows, so that these are float16.
        if last.exact and len(last.ids) + len(new) <= _VECTORS_PER_BLOCK:
            return [*kept, last.extended(numbers, ids, vectors)]
        return [*kept, last, _Block(numbers, ids, vectors, exact=True)]

    def read(self) -> Iterator[tuple[IntArray, NDArray[np.float16]]]:
        """Yield the table in blocks: numbers of rows, ``(m,)``, and vectors, ``(m, d)``."""
        table = self._store.table(self._table)
        dimension, rows = table.schema.field(VECTOR).type.list_size, table.count_rows()
        numbers, vectors = np.empty(0, np.int64), np.empty((0, dimension), np.float16)
        filled = 0
        with self._store.errors("read"):
            for batch in table.search().select([NUMBER, VECTOR]).to_batches(batch_size=8192):
                done = 0
                while done < len(batch):
                    if not filled:
                        # Allocated at full size, as growing an array needs twice the memory.
                        size = min(_VECTORS_PER_BLOCK, rows)
                        numbers = np.empty(size, np.int64)
                        vectors = np.empty((size, dimension), np.float16)
                    part = batch.slice(done, len(numbers) - filled)
                    stop = filled + len(part)
                    numbers[filled:stop] = part[NUMBER].to_numpy()
                    vectors[filled:stop] = part[VECTOR].flatten().to_numpy().reshape(-1, dimension)
                    done, filled = done + len(part), stop
                    if filled == len(numbers):
                        rows, filled = rows - filled, 0
                        yield numbers, vectors
