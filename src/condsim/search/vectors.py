"""Vectors of the texts of a collection under a condition, their cosines, and groups of near ones.

Clusters, duplicates and searches make their vectors here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from condsim.console import Progress
from condsim.errors import InputError, require
from condsim.model.base import Condition, check_fraction, check_rows, rescaled
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer
from condsim.types import BoolArray, FloatArray, IntArray

ConditionInput = Condition | Sequence[Condition] | None
"""One condition, several, or None to compare texts as a whole."""

EXACT_UP_TO = 8_192
TEXTS_PER_STEP = 1_024
_EDGES_PER_PART = 65_536
_TEXTS_PER_CELL = 512
_MAX_CELLS = 2_048
_CELLS_SEARCHED = 32
_SAMPLE_TEXTS = 32_768
# Vectors in the FAISS index have one byte a number; pairs are verified with the stored ones.
_BYTE_ERROR = 0.02

Numbers = NDArray[np.int32]
Edges = tuple[IntArray, IntArray]
"""Indices of texts that are compared, and positions of texts near them."""


def condition_list(condition: ConditionInput, scorer: EmbeddingScorer) -> list[str | None]:
    """Return the conditions by name as a list, checked; ``[None]`` where there is none."""
    if condition is None:
        return [None]
    given = [condition] if isinstance(condition, str | Criterion) else list(condition)
    # A learned criterion is called by its name from here on.
    conditions = [scorer.named(item) if isinstance(item, Criterion) else item for item in given]
    if not conditions or len(set(conditions)) < len(conditions):
        raise InputError("Give at least one condition, and each condition once.")
    check_rows(conditions)
    return [*conditions]


def encode_texts(
    scorer: EmbeddingScorer,
    texts: Sequence[str],
    condition: Condition | None,
    overall: float,
    progress: Progress,
) -> FloatArray:
    """Encode texts as `EmbeddingScorer.encode` does, in steps whose progress is reported."""
    width = scorer.dimension_of(condition, overall=overall)
    vectors = np.empty((len(texts), width), dtype=np.float32)
    for start in range(0, len(texts), TEXTS_PER_STEP):
        block = texts[start : start + TEXTS_PER_STEP]
        vectors[start : start + len(block)] = scorer.encode(block, condition, overall=overall)
        progress(f"encoding: {condition or 'no condition'}", start + len(block), len(texts))
    return vectors


def cosine_scores(
    scorer: EmbeddingScorer, cosines: FloatArray, condition: Condition | None = None
) -> FloatArray:
    """Turn cosines of vectors under a condition into scores, in [0, 1]."""
    return rescaled(np.clip(cosines, -1, 1), scorer.calibration_of(condition), "unit")


def lowest_cosine(
    scorer: EmbeddingScorer, score: float, *, argument: str, condition: Condition | None = None
) -> float:
    """Return the lowest cosine with a score; InputError names the argument if there is none."""
    check_fraction("score", **{argument: score})
    calibration = scorer.calibration_of(condition)
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
    """Vectors of texts under a condition, by their rows in the file, the preferred text first.

    ``limit`` is the cosine that duplicates reach.
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


class Neighbors(Protocol):
    """Texts added so far, to be compared with new ones."""

    def reset(self) -> None:
        """Remove all texts; what was learned of their vectors stays."""

    def add(self, vectors: FloatArray, positions: IntArray) -> None:
        """Add texts by their vectors and positions."""

    def search(self, vectors: FloatArray, limit: np.float32) -> Edges:
        """Return indices of ``vectors`` and positions of added texts near them."""


class _ExactNeighbors:
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


class _ApproximateNeighbors:
    """Compare with the texts in the nearest cells of a FAISS index."""

    def __init__(self, space: VectorSpace) -> None:
        faiss: Any = require("faiss", extra="search")
        count, width = len(space.rows), space.file.width
        cells = min(_MAX_CELLS, max(1, count // _TEXTS_PER_CELL))
        drawn = np.random.default_rng(0).choice(count, min(count, _SAMPLE_TEXTS), replace=False)
        self._cells = faiss.IndexFlatIP(width)
        self._index = faiss.IndexIVFScalarQuantizer(
            self._cells, width, cells, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
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


def find_neighbors(space: VectorSpace) -> Neighbors:
    """Compare with every text up to `EXACT_UP_TO`, beyond that with the nearest cells."""
    if len(space.rows) <= EXACT_UP_TO:
        return _ExactNeighbors(space.file.width)
    return _ApproximateNeighbors(space)


def verified_edges(
    spaces: Sequence[VectorSpace], vectors: Sequence[FloatArray], edges: Edges
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the edges whose cosines reach every limit, and the cosines in the first space."""
    order = np.argsort(edges[1], kind="stable")
    queries, positions = edges[0][order], edges[1][order]
    cosines = np.empty(0, np.float32)
    for number, (space, queried) in enumerate(zip(spaces, vectors, strict=True)):
        cosine = np.empty(len(queries), np.float32)
        # In parts, as the vectors of all edges would take gigabytes.
        for start in range(0, len(queries), _EDGES_PER_PART):
            part = slice(start, start + _EDGES_PER_PART)
            stored, index = np.unique(positions[part], return_inverse=True)
            near_vectors = space.take(stored)[index]
            cosine[part] = np.einsum("nd,nd->n", queried[queries[part]], near_vectors)
        near = cosine >= space.limit
        queries, positions = queries[near], positions[near]
        cosines = cosine[near] if number == 0 else cosines[near]
    return queries, positions, cosines


def group_positions(
    spaces: Sequence[VectorSpace],
    *,
    unread: IntArray,
    chain: bool = False,
    all_pairs: bool = False,
    neighbors: Neighbors | None = None,
    progress: Progress,
) -> tuple[Numbers, BoolArray]:
    """Group m texts, given with the preferred first; texts are near if they are in every space.

    Texts with different hashes of ``unread`` words, ``(m,)``, are not near. With ``chain``, groups
    are connected components; ``all_pairs`` compares with texts that were not kept, too. Returns the
    position of the text that leads the group of each, and which texts are near to another,
    ``(m,)`` each; ``neighbors`` can be used again.
    """
    count = len(spaces[0].rows)
    group = np.arange(count, dtype=np.int32)
    touched = np.zeros(count, np.bool_)
    neighbors = neighbors or find_neighbors(spaces[0])
    neighbors.reset()
    for start in range(0, count, TEXTS_PER_STEP):
        positions = np.arange(start, min(start + TEXTS_PER_STEP, count))
        vectors = [space.take(positions) for space in spaces]
        edges = neighbors.search(vectors[0], spaces[0].limit)
        queries, earlier, cosines = verified_edges(spaces, vectors, edges)
        agree = unread[positions[queries]] == unread[earlier]
        queries, earlier, cosines = queries[agree], earlier[agree], cosines[agree]
        products = [block @ block.T for block in vectors]
        near = np.ones((len(positions), len(positions)), np.bool_)
        for space, product in zip(spaces, products, strict=True):
            near &= product >= space.limit
        near &= unread[positions, None] == unread[positions]
        np.fill_diagonal(near, val=False)
        rows, columns = np.nonzero(np.tril(near))
        touched[earlier] = touched[positions[queries]] = True
        touched[positions[near.any(axis=1)]] = True
        queries, earlier = np.append(queries, rows), np.append(earlier, positions[columns])
        if chain:
            _join(group, positions[queries], earlier)
        else:
            inner = products[0][rows, columns]
            _follow(group, positions, (queries, earlier), np.append(cosines, inner))
        added = chain | all_pairs | (group[positions] == positions)
        neighbors.add(np.ascontiguousarray(vectors[0][added]), positions[added])
        progress("compared", int(positions[-1]) + 1, count)
    return group, touched


def _follow(group: Numbers, positions: IntArray, edges: Edges, cosines: FloatArray) -> None:
    """Let each text of a block join its nearest leader before it, or lead a group."""
    queries, earlier = edges
    by_query = np.argsort(queries, kind="stable")
    ends = np.searchsorted(queries[by_query], np.arange(len(positions) + 1))
    for index, position in enumerate(positions.tolist()):
        own = by_query[ends[index] : ends[index + 1]]
        own = own[group[earlier[own]] == earlier[own]]
        if len(own):
            # Break ties in favor of the preferred leader.
            group[position] = earlier[own[np.lexsort((earlier[own], -cosines[own]))[0]]]


def _join(group: Numbers, near1: IntArray, near2: IntArray) -> None:
    """Join the components of near texts; each is named by its lowest position."""
    if not len(near1):
        return
    graph: Any = require("scipy.sparse.csgraph", extra="search")
    sparse: Any = require("scipy.sparse", extra="search")
    names, ends = np.unique(np.stack([group[near1], group[near2]]), return_inverse=True)
    ends = ends.reshape(2, -1)
    edges = sparse.coo_array(
        (np.ones(ends.shape[1], np.bool_), (ends[0], ends[1])), shape=(len(names), len(names))
    )
    component = graph.connected_components(edges, directed=False)[1]
    lowest = np.full(component.max() + 1, len(group), np.int32)
    np.minimum.at(lowest, component, names)
    renamed = np.arange(len(group), dtype=np.int32)
    renamed[names] = lowest[component]
    group[:] = renamed[group]
