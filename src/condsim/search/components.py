"""Groups of near vectors: connected components of all pairs above a cosine, in bounded memory.

Vectors lie in files. Up to `EXACT_UP_TO` of them, every pair is compared. More are put into the
cells of a few nearest centroids each (FAISS), and two are compared where they share a cell.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.errors import require
from condsim.progress import Progress
from condsim.types import BoolArray, FloatArray, IntArray

EXACT_UP_TO = 8_192
_CELLS_OF_ONE = 3  # cells that a vector is put into
_CELL = 512  # vectors of a cell, on average
_MOST_CELLS = 2_048
_SAMPLE = 32_768  # vectors that the centroids are made of
_BLOCK = 8_192  # vectors put into cells at a time
_TILE = 1_024  # vectors compared with as many others at a time


class StoredVectors(NamedTuple):
    """Vectors of length 1 in a file of float32, and which of them are meant (None: all)."""

    path: Path
    width: int
    rows: IntArray | None = None

    def take(self, rows: IntArray) -> FloatArray:
        """Reads some of those meant, ``(len(rows), width)``; a map would stay in memory."""
        size = 4 * self.width
        wanted = (rows if self.rows is None else self.rows[rows]).tolist()
        read = bytearray()
        with self.path.open("rb", buffering=0) as stream:
            for row in wanted:
                stream.seek(row * size)
                read += stream.read(size)
        return np.frombuffer(read, np.float32).reshape(-1, self.width)


def components(
    vectors: Sequence[StoredVectors], count: int, *, cosine: float, progress: Progress
) -> IntArray:
    """Joins what is near in all of some sets of vectors of the same things.

    Args:
        vectors: The sets; the first makes the cells.
        count: Number of things, n.
        cosine: The lowest cosine of two that are near.
        progress: Called with the number of cells done.

    Returns:
        The lowest number in the component of each thing, ``(n,)``.
    """
    parents = array("q", range(count))
    limit = np.float32(cosine)
    if limit < cosine:  # rounded up, a float32 reaches it if and only if it reaches the cosine
        limit = np.nextafter(limit, np.float32(2))
    cells = [np.arange(count)] if count <= EXACT_UP_TO else list(_cells(vectors[0], count))
    for number, cell in enumerate(cells, start=1):
        tiles = [cell[start : start + _TILE] for start in range(0, len(cell), _TILE)]
        for one, two in combinations_with_replacement(range(len(tiles)), 2):
            near = _near(vectors, tiles[one], tiles[two], limit)
            if one == two:
                near = np.triu(near, 1)
            _join(parents, tiles[one], tiles[two], near)
        progress("compared", number, len(cells))
    roots = np.array(parents, np.int64)
    while (roots != roots[roots]).any():
        roots = roots[roots]
    return roots


def _cells(vectors: StoredVectors, count: int) -> Iterator[IntArray]:
    """The numbers of the vectors in each cell, ascending."""
    faiss: Any = require("faiss", extra="search")
    number = min(_MOST_CELLS, _CELLS_OF_ONE * count // _CELL)
    drawn = np.random.default_rng(0).choice(count, min(count, _SAMPLE), replace=False)
    means = faiss.Kmeans(
        vectors.width, number, niter=8, spherical=True, seed=1, min_points_per_centroid=1
    )
    means.train(vectors.take(np.sort(drawn)))
    cell_of = np.empty((count, _CELLS_OF_ONE), np.uint16)
    for start in range(0, count, _BLOCK):
        part = np.arange(start, min(start + _BLOCK, count))
        cell_of[part] = means.index.search(vectors.take(part), _CELLS_OF_ONE)[1]
    order = np.argsort(cell_of, axis=None, kind="stable")  # (count * _CELLS_OF_ONE,)
    ends = np.cumsum(np.bincount(cell_of.ravel(), minlength=number))
    for start, stop in zip((0, *ends[:-1]), ends, strict=True):
        yield order[start:stop] // _CELLS_OF_ONE


def _near(
    vectors: Sequence[StoredVectors], one: IntArray, two: IntArray, limit: np.float32
) -> BoolArray:
    """Which of two tiles are near in every set, ``(len(one), len(two))``."""
    near = np.ones((len(one), len(two)), np.bool_)
    for stored in vectors:
        left = stored.take(one)
        near &= left @ (left if one is two else stored.take(two)).T >= limit
        if not near.any():
            break
    return near


def _join(parents: array[int], one: IntArray, two: IntArray, near: BoolArray) -> None:
    """Joins the components of near vectors; the parent of each is never a higher number."""
    rows, columns = np.nonzero(near)
    if not rows.size:
        return
    graph: Any = require("scipy.sparse.csgraph", extra="search")
    sparse: Any = require("scipy.sparse", extra="search")
    size = len(one) + len(two)  # a vector may be in both; then it has two places
    edges = sparse.coo_array(
        (np.ones(rows.size, np.bool_), (rows, columns + len(one))), shape=(size, size)
    )
    labels: NDArray[np.int32] = graph.connected_components(edges, directed=False)[1]
    members = np.concatenate([one, two]).tolist()
    _, first = np.unique(labels, return_index=True)
    for place in np.unique([*rows, *(columns + len(one))]).tolist():
        left, right = _root(parents, members[place]), _root(parents, members[first[labels[place]]])
        parents[max(left, right)] = min(left, right)


def _root(parents: array[int], number: int) -> int:
    while parents[number] != number:
        parents[number] = number = parents[parents[number]]
    return number
