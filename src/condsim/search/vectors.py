"""Vectors of the texts of a collection under a condition, and scores of their cosines.

Clusters, duplicates and searches make their vectors here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, require
from condsim.model.base import check_threshold, rescaled
from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray, IntArray

EXACT_UP_TO = 8_192
_TEXTS_PER_CELL = 512
_MAX_CELLS = 2_048
_CELLS_SEARCHED = 32
_SAMPLE_TEXTS = 32_768
# Vectors in the FAISS index have one byte a number; pairs are verified with the stored ones.
_BYTE_ERROR = 0.02

Numbers = NDArray[np.int32]
Edges = tuple[IntArray, IntArray]
"""Indices of texts that are compared, and positions of texts near them."""


def condition_vectors(
    scorer: EmbeddingScorer, texts: Sequence[str], condition: str | None, *, overall: float = 0.0
) -> FloatArray:
    """Encode texts under a condition as unit vectors, ``(n, d)``; None compares whole texts.

    With a share of the whole there are 2 d numbers; see `EmbeddingScorer.encode`.
    """
    if not overall or condition is None:
        return scorer.encode(list(texts), condition)
    return scorer.encode(list(texts), condition, overall=overall)


def width(scorer: EmbeddingScorer, condition: str | None, overall: float) -> int:
    """Return the length of a vector of `condition_vectors`."""
    return scorer.dimension * (2 if overall and condition is not None else 1)


def cosine_scores(scorer: EmbeddingScorer, cosines: FloatArray) -> FloatArray:
    """Turn cosines of such vectors into scores, in [0, 1]."""
    return rescaled(np.clip(cosines, -1, 1), scorer.calibration, "unit")


def lowest_cosine(scorer: EmbeddingScorer, score: float, *, argument: str) -> float:
    """Return the lowest cosine with a score; InputError names the argument if there is none."""
    check_threshold(score, argument=argument)
    calibration = scorer.calibration
    cosine = score if calibration is None else calibration.lowest_raw(score)
    if cosine > 1:
        highest = float(calibration.apply(1.0)) if calibration else 1.0
        raise InputError(
            f"No pair reaches a score of {score}: {scorer.name!r} gives {highest:.4f} at most. "
            f"Lower {argument!r}."
        )
    return cosine


class VectorFile(NamedTuple):
    """Unit vectors in a file of float32."""

    path: Path
    width: int

    def take(self, rows: Numbers) -> FloatArray:
        """Read some vectors, ``(len(rows), width)``; a memory map would stay in memory."""
        size = 4 * self.width
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        content = bytearray()
        with self.path.open("rb", buffering=0) as stream:
            for run in runs:
                if len(run):
                    stream.seek(int(run[0]) * size)
                    content += stream.read(size * len(run))
        return np.frombuffer(content, np.float32).reshape(-1, self.width)


class VectorSpace(NamedTuple):
    """Vectors of some texts under a condition, the preferred text first.

    Attributes:
        rows: Row in the file of the text at each position, ``(m,)``.
        limit: Cosine that duplicates reach.
    """

    file: VectorFile
    rows: Numbers
    limit: np.float32

    def take(self, positions: IntArray) -> FloatArray:
        """Read the vectors of the texts at some positions."""
        return self.file.take(self.rows[positions])


def float32_limit(cosine: float) -> np.float32:
    """Round up, so that a float32 reaches the result if and only if it reaches the cosine."""
    limit = np.float32(cosine)
    return limit if limit >= cosine else np.nextafter(limit, np.float32(2))


class Neighbours(Protocol):
    """Texts added so far, to be compared with new ones."""

    def reset(self) -> None:
        """Remove all texts; what was learned of their vectors stays."""

    def add(self, vectors: FloatArray, positions: IntArray) -> None:
        """Add texts by their vectors and positions."""

    def search(self, vectors: FloatArray, limit: np.float32) -> Edges:
        """Return indices of ``vectors`` and positions of added texts near them."""


class _ExactNeighbours:
    """Compare with every text."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.reset()

    def reset(self) -> None:
        self._vectors = np.empty((0, self._width), np.float32)
        self._positions: IntArray = np.empty(0, np.int64)

    def add(self, vectors: FloatArray, positions: IntArray) -> None:
        self._vectors = np.concatenate([self._vectors, vectors])
        self._positions = np.concatenate([self._positions, positions])

    def search(self, vectors: FloatArray, limit: np.float32) -> Edges:
        queries, columns = np.nonzero(vectors @ self._vectors.T >= limit)
        return queries, self._positions[columns]


class _ApproximateNeighbours:
    """Compare with the texts in the nearest cells of a FAISS index."""

    def __init__(self, space: VectorSpace) -> None:
        faiss: Any = require("faiss", extra="search")
        count, width = len(space.rows), space.file.width
        cells = min(_MAX_CELLS, max(1, count // _TEXTS_PER_CELL))
        drawn = np.random.default_rng(0).choice(count, min(count, _SAMPLE_TEXTS), replace=False)
        self._cells = faiss.IndexFlatIP(width)
        self._index = faiss.IndexIVFScalarQuantizer(
            self._cells,
            width,
            cells,
            faiss.ScalarQuantizer.QT_8bit,
            faiss.METRIC_INNER_PRODUCT,
        )
        self._index.train(space.take(np.sort(drawn)))
        self._index.nprobe = _CELLS_SEARCHED

    def reset(self) -> None:
        self._index.reset()

    def add(self, vectors: FloatArray, positions: IntArray) -> None:
        self._index.add_with_ids(vectors, positions.astype(np.int64))

    def search(self, vectors: FloatArray, limit: np.float32) -> Edges:
        ends, _, positions = self._index.range_search(vectors, float(limit) - _BYTE_ERROR)
        queries = np.repeat(np.arange(len(vectors)), np.diff(ends.astype(np.int64)))
        return queries, positions


def find_neighbours(space: VectorSpace) -> Neighbours:
    """Compare with every text up to `EXACT_UP_TO`, beyond that with the nearest cells."""
    if len(space.rows) <= EXACT_UP_TO:
        return _ExactNeighbours(space.file.width)
    return _ApproximateNeighbours(space)
