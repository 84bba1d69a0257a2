"""The first stage of a search: stored vectors, compared with that of the query by dot product."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import faiss
import numpy as np
from numpy.typing import NDArray

from condsim.errors import ModelError
from condsim.loading import load_scorer
from condsim.scorers import EmbeddingScorer
from condsim.search.rows import NUMBER, VECTOR
from condsim.search.store import Store
from condsim.types import FloatArray, IntArray

_BLOCK = 65_536  # vectors searched by one thread
_MOST = 1 << 30  # bytes of vectors kept in memory; more are read anew for every search


def load_encoder(model: str | Path | EmbeddingScorer | None) -> EmbeddingScorer:
    """Loads a model that gives embeddings; one that is loaded stays as it is.

    Raises:
        ModelError: If there is no such model, or it gives scores only.
    """
    scorer = model if isinstance(model, EmbeddingScorer) else load_scorer(model)
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives scores only; an index needs a bi-encoder.")
    return scorer


class FirstStage(Protocol):
    """What is stored of each text, and what a query asks of it."""

    @property
    def name(self) -> str:
        """Kept with the index, which refuses another one."""

    @property
    def dimension(self) -> int:
        """Length d of a stored vector."""

    def stored(self, texts: Sequence[str]) -> FloatArray:
        """Gives the vectors to store of n texts, ``(n, d)``."""

    def query(self, text: str, condition: str) -> FloatArray:
        """Gives the vector, ``(d,)``, whose dot product with a stored one ranks the texts."""


class PlainVectors:
    """Embeddings without a condition: near texts are likely to be near in some respect."""

    name = "plain"

    def __init__(self, scorer: EmbeddingScorer) -> None:
        """Takes the model."""
        self._scorer = scorer
        self.dimension = scorer.dimension

    def stored(self, texts: Sequence[str]) -> FloatArray:
        """Embeds texts."""
        return self._scorer.encode(texts)

    def query(self, text: str, condition: str) -> FloatArray:
        """Embeds the query; the condition does not count."""
        return self._scorer.encode(text)


@dataclass(frozen=True, eq=False)
class _Block:
    """Numbers of rows, ``(m,)``, and their vectors, in float16 as faiss compares them."""

    numbers: IntArray
    vectors: Any

    @classmethod
    def of(cls, numbers: IntArray, vectors: NDArray[np.float16]) -> _Block:
        kind = faiss.ScalarQuantizer.QT_fp16
        index = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        index.is_trained = True  # float16 needs no training
        index.add_sa_codes(vectors.view(np.uint8))
        return cls(numbers, index)

    def best(
        self, asked: FloatArray, top: int, allowed: IntArray | None
    ) -> tuple[IntArray, FloatArray]:
        """The best rows of the block and their scores, best first."""
        chosen, rows = None, len(self.numbers)
        if allowed is not None:
            mask = np.isin(self.numbers, allowed, assume_unique=True)
            rows = int(mask.sum())
            bits = np.packbits(mask, bitorder="little")
            library: Any = faiss  # its stubs know C++ only
            chosen = library.SearchParameters(sel=library.IDSelectorBitmap(bits))
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        scores, places = self.vectors.search(asked[None], min(top, rows), params=chosen)
        return self.numbers[places[0]], scores[0]


class Vectors:
    """The vectors of a table, searched exhaustively; kept in memory where they are few enough."""

    def __init__(self, store: Store, table: str) -> None:
        """Reads nothing yet."""
        self._store = store
        self._table = table
        self._kept: list[_Block] | None = None
        self._version: int | None = None

    def best(
        self, asked: FloatArray, top: int, *, allowed: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Finds the rows with the highest dot products.

        Args:
            asked: The vector to compare with, ``(d,)``.
            top: Most rows to find.
            allowed: Numbers of the only rows to look at, sorted; all if None.

        Returns:
            Numbers of the rows and their dot products, best first; of equal ones the first row.
        """
        asked = np.ascontiguousarray(asked, np.float32)
        with ThreadPoolExecutor(_processors()) as pool:
            found = [
                part
                for some in _few(self._blocks(), _processors())
                for part in pool.map(lambda one: one.best(asked, top, allowed), some)
            ]
        numbers = np.concatenate([np.empty(0, np.int64), *(part[0] for part in found)])
        scores = np.concatenate([np.empty(0, np.float32), *(part[1] for part in found)])
        order = np.lexsort((numbers, -scores))[:top]
        return numbers[order], scores[order]

    def _blocks(self) -> Iterator[_Block]:
        table = self._store.table(self._table)
        if self._kept is not None and self._version == table.version:
            yield from self._kept
            return
        self._kept, self._version = None, table.version
        width = 2 * table.schema.field(VECTOR).type.list_size
        kept: list[_Block] | None = [] if table.count_rows() * width <= _MOST else None
        for block in (_Block.of(*part) for part in self.read()):
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


def _few(blocks: Iterator[_Block], size: int) -> Iterator[list[_Block]]:
    """Blocks in groups, so that no more are in memory at once."""
    group: list[_Block] = []
    for block in blocks:
        group.append(block)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
