"""Duplicates under a condition: near texts are found, grouped, and one of each group is kept."""

# Vectors lie in files. Up to `EXACT_UP_TO` of them, every pair is compared. More are put into the
# cells of a few nearest centroids each (FAISS), and two are compared where they share a cell.

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations_with_replacement, compress, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.console import Progress, silent
from condsim.errors import InputError, ModelError, require
from condsim.model.base import check_threshold, rescaled
from condsim.model.embedding import EmbeddingScorer
from condsim.types import BoolArray, FloatArray, IntArray, Scorer

EXACT_UP_TO = 8_192
_CELLS_OF_ONE = 3  # cells that a vector is put into
_CELL = 512  # vectors of a cell, on average
_MOST_CELLS = 2_048
_SAMPLE = 32_768  # vectors that the centroids are made of
_CELL_BLOCK = 8_192  # vectors put into cells at a time
_TILE = 1_024  # vectors compared with as many others at a time

_Numbers = NDArray[np.int32]
"""Numbers of texts or of their rows; half as large as others, as there is one for each text."""


class StoredVectors(NamedTuple):
    """Vectors of length 1 in a file of float32, and which of them are meant (None: all)."""

    path: Path
    width: int
    rows: _Numbers | None = None

    def take(self, rows: _Numbers) -> FloatArray:
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
) -> _Numbers:
    """Lowest number in the component of each of n things, ``(n,)``: near ones are joined."""
    # Near in all sets of vectors, at a cosine of ``cosine`` or more; the first makes the cells.
    parents = array("i", range(count))
    limit = np.float32(cosine)
    if limit < cosine:  # rounded up, a float32 reaches it if and only if it reaches the cosine
        limit = np.nextafter(limit, np.float32(2))
    few = count <= EXACT_UP_TO
    cells = [[np.arange(count, dtype=np.int32)]] if few else _cells(vectors[0], count)
    for number, parts in enumerate(cells, start=1):
        cell = np.concatenate(parts)
        tiles = [cell[start : start + _TILE] for start in range(0, len(cell), _TILE)]
        for one, two in combinations_with_replacement(range(len(tiles)), 2):
            near = _near(vectors, tiles[one], tiles[two], limit)
            if one == two:
                near = np.triu(near, 1)
            _join(parents, tiles[one], tiles[two], near)
        progress("compared", number, len(cells))
    roots = np.array(parents, np.int32)
    while (roots != roots[roots]).any():
        roots = roots[roots]
    return roots


def _cells(vectors: StoredVectors, count: int) -> list[tuple[_Numbers, ...]]:
    """The numbers of the vectors in each cell, in parts that are ascending."""
    faiss: Any = require("faiss", extra="search")
    number = min(_MOST_CELLS, _CELLS_OF_ONE * count // _CELL)
    drawn = np.random.default_rng(0).choice(count, min(count, _SAMPLE), replace=False)
    means = faiss.Kmeans(
        vectors.width, number, niter=8, spherical=True, seed=1, min_points_per_centroid=1
    )
    means.train(vectors.take(np.sort(drawn)))
    cell_of = np.empty((count, _CELLS_OF_ONE), np.uint16)
    for start in range(0, count, _CELL_BLOCK):
        part = np.arange(start, min(start + _CELL_BLOCK, count), dtype=np.int32)
        cell_of[part] = means.index.search(vectors.take(part), _CELLS_OF_ONE)[1]
    parts = []
    for cells in cell_of.T:
        order = np.argsort(cells, kind="stable").astype(np.int32)
        parts.append(np.split(order, np.cumsum(np.bincount(cells, minlength=number))[:-1]))
    return list(zip(*parts, strict=True))


def _near(
    vectors: Sequence[StoredVectors], one: _Numbers, two: _Numbers, limit: np.float32
) -> BoolArray:
    """Which of two tiles are near in every set, ``(len(one), len(two))``."""
    near = np.ones((len(one), len(two)), np.bool_)
    for stored in vectors:
        left = stored.take(one)
        near &= left @ (left if one is two else stored.take(two)).T >= limit
        if not near.any():
            break
    return near


def _join(parents: array[int], one: _Numbers, two: _Numbers, near: BoolArray) -> None:
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


Keep = Literal["first", "longest"] | Sequence[float]
"""Which text of a group is kept: the first, the longest, or that of the highest number."""

_BLOCK = 4096  # texts encoded, or pairs scored, at once: what bounds the memory


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Which texts stand for which.

    Attributes:
        kept_row: Row of the text that is kept in place of each, ``(n,)``; its own if it is kept.
        score: Score of each text against the one that is kept, ``(n,)``; 1 for the same text. It
            may be below the threshold where a third text links the two.
        cosine: The raw similarity that the threshold on the score stands for.
    """

    kept_row: NDArray[np.int32]
    score: FloatArray
    cosine: float

    @property
    def kept(self) -> BoolArray:
        """Which texts are kept, ``(n,)``."""
        kept: BoolArray = self.kept_row == np.arange(len(self.kept_row))
        return kept

    @property
    def sizes(self) -> IntArray:
        """Number of texts that each stands for, itself included, ``(n,)``; 0 if it is not kept."""
        return np.bincount(self.kept_row, minlength=len(self.kept_row))


def find_duplicates(
    texts: Iterable[str],
    scorer: Scorer,
    condition: str,
    *,
    at_least: float,
    keep_if_differs: Sequence[str] = (),
    keep: Keep = "first",
    folder: Path | None = None,
    progress: Progress = silent,
) -> Duplicates:
    """Finds texts that say the same with respect to a condition.

    Two texts are duplicates if their score reaches the threshold, under the condition and under
    each one of ``keep_if_differs``. Groups are connected components: what is a duplicate of a
    duplicate is in the group as well. Among more than 8,192 distinct texts, only near neighbours
    are compared (FAISS), which may miss a pair with a cosine far below 0.9.

    Each distinct text is encoded once, and its vector kept on disk (float32, 1.5 kB for the model
    that ships); in memory are about 30 bytes a text.

    Args:
        texts: The texts, n; iterated over twice or more, so that they need not be in memory.
        scorer: A bi- or tri-encoder.
        condition: What duplicates have in common.
        at_least: The calibrated score from which two texts are the same, in [0, 1].
        keep_if_differs: Conditions under which duplicates must be the same as well.
        keep: Which text of a group is kept: ``"first"``, ``"longest"`` (in characters), or the one
            with the highest of n numbers, such as dates. Of equal ones, the first.
        folder: Where vectors lie during the work; the system's temporary folder if None.
        progress: Called with the stage, what is done and what there is.

    Returns:
        Which text stands for each.

    Raises:
        InputError: If the input breaks a rule, or the vectors do not fit on the disk.
        ModelError: If the scorer has no embeddings.
        MissingExtraError: If the ``search`` extra is not installed.

    Example:
        >>> import condsim
        >>> texts = ["A dog runs.", "A cat sleeps.", "A dog runs."]
        >>> find_duplicates(texts, condsim.load(), "the animal", at_least=0.9).kept.tolist()
        [True, True, False]
    """
    check_threshold(at_least)
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives scores only; this needs a bi- or tri-encoder.")
    if iter(texts) is texts:
        raise InputError("The 'texts' are iterated over twice; give a list, not an iterator.")
    cosine = at_least if scorer.calibration is None else scorer.calibration.lowest_raw(at_least)
    if cosine > 1:
        highest = float(scorer.calibration.apply(1.0)) if scorer.calibration else 1.0
        raise InputError(
            f"No pair reaches a score of {at_least}: {scorer.name!r} gives {highest:.4f} at most. "
            "Lower 'at_least'."
        )
    others = (keep_if_differs,) if isinstance(keep_if_differs, str) else tuple(keep_if_differs)
    read = _Texts(texts, progress)
    ranks = _ranks(keep, read)
    try:
        with tempfile.TemporaryDirectory(prefix="condsim-", dir=folder) as temporary:
            work = _Work(read, scorer, Path(temporary), progress)
            group = work.groups(condition, others, cosine=cosine)[read.text_of]  # (n,)
            kept_row = _kept_rows(group, ranks)
            score = work.scores(kept_row)
    except OSError as error:
        size = (1 + len(others)) * len(read.first) * scorer.dimension * 4 >> 20
        raise InputError(
            f"Cannot keep the vectors in {folder or tempfile.gettempdir()}: "
            f"{error.strerror or error}. Up to {size + 1:,} MiB are needed there."
        ) from error
    return Duplicates(kept_row, score, cosine)


class _Texts:
    """Which texts are the same, by 64 bits of hash: two of a million collide once in 4e7 files."""

    def __init__(self, texts: Iterable[str], progress: Progress) -> None:
        self.texts = texts
        digests, lengths = array("Q"), array("i")
        for row, text in enumerate(texts, start=1):
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"Text {row} must be a str with text. Got {text!r} instead.")
            hashed = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            digests.append(int.from_bytes(hashed))
            lengths.append(len(text))
            if row % _BLOCK == 0:
                progress("read", row, 0)
        if not lengths:
            raise InputError("There are no texts. Give one or more.")
        self.lengths: _Numbers = np.frombuffer(lengths, np.int32)  # in characters, (n,)
        # (m,): the row in which each distinct text is first; (n,): the distinct text of each row
        self.first, self.text_of = _distinct(np.frombuffer(digests, np.uint64))

    def read(self, rows: _Numbers) -> Iterator[list[str]]:
        """Reads the texts of some rows in their order, block by block."""
        wanted = np.zeros(len(self.lengths), np.bool_)
        wanted[rows] = True
        texts = compress(self.texts, wanted)
        read = 0
        while block := list(islice(texts, _BLOCK)):
            read += len(block)
            yield block
        if read != len(rows):
            raise InputError(f"The texts changed while they were read: {len(rows)}, then {read}.")


def _distinct(digests: NDArray[np.uint64]) -> tuple[_Numbers, _Numbers]:
    """First rows of m distinct values, ascending, and which of them each row has."""
    # This is `numpy.unique` in a third of its memory.
    order = np.argsort(digests, kind="stable").astype(np.int32)
    new = np.ones(len(order), np.bool_)
    for start in range(1, len(order), _BLOCK):
        part = digests[order[start - 1 : start + _BLOCK]]
        new[start : start + _BLOCK] = part[1:] != part[:-1]
    first = order[new]  # in the order of the values
    text_of = np.empty_like(order)
    text_of[order] = np.repeat(first, np.diff(np.flatnonzero(new), append=len(order)))
    first.sort()
    for start in range(0, len(order), _BLOCK):
        rows = text_of[start : start + _BLOCK]
        rows[:] = np.searchsorted(first, rows)
    return first, text_of


class _Work:
    """Vectors of the distinct texts in a folder."""

    def __init__(
        self, texts: _Texts, scorer: EmbeddingScorer, folder: Path, progress: Progress
    ) -> None:
        self._texts, self._scorer, self._folder = texts, scorer, folder
        self._progress = progress
        self._vectors = StoredVectors(folder / "0", scorer.dimension)

    def groups(self, condition: str, others: Sequence[str], *, cosine: float) -> _Numbers:
        """The lowest number in the group of each distinct text, (m,)."""
        count = len(self._texts.first)
        self._encode(self._vectors, condition, self._texts.first)
        group = components([self._vectors], count, cosine=cosine, progress=self._progress)
        near = np.flatnonzero(np.bincount(group, minlength=count)[group] > 1).astype(np.int32)
        if not others or not near.size:
            return group
        sets = [self._vectors._replace(rows=near)]  # what is alone stays alone
        for number, other in enumerate(others, start=1):
            sets.append(StoredVectors(self._folder / str(number), self._scorer.dimension))
            self._encode(sets[-1], other, self._texts.first[near])
        group = np.arange(count, dtype=np.int32)
        found = components(sets, len(near), cosine=cosine, progress=self._progress)
        group[near] = near[found]
        return group

    def _encode(self, stored: StoredVectors, condition: str, rows: _Numbers) -> None:
        """Writes the vectors of the texts of some rows under a condition."""
        done = 0
        with stored.path.open("wb") as stream:
            for block in self._texts.read(rows):
                vectors = self._scorer.encode(block, condition)
                stream.write(np.ascontiguousarray(vectors, np.float32).tobytes())
                done += len(block)
                self._progress(f"encoded under {condition!r}", done, len(rows))

    def scores(self, kept_row: _Numbers) -> FloatArray:
        """Scores of each row against the one kept in its place, (n,)."""
        ones, twos = self._texts.text_of, self._texts.text_of[kept_row]
        scores = np.ones(len(kept_row), np.float32)
        differ = np.flatnonzero(ones != twos)
        for start in range(0, len(differ), _BLOCK):
            part = differ[start : start + _BLOCK]
            left, right = self._vectors.take(ones[part]), self._vectors.take(twos[part])
            raw = np.clip(np.einsum("nd,nd->n", left, right), -1, 1)
            scores[part] = rescaled(raw, self._scorer.calibration, "unit")
        return scores


def _ranks(keep: Keep, texts: _Texts) -> NDArray[np.float64] | _Numbers | None:
    """What decides which row of a group is kept, ``(n,)``: the highest; None: the first row."""
    if isinstance(keep, str):
        if keep not in ("first", "longest"):
            raise InputError(
                f"'keep' must be 'first', 'longest' or a number for each text. Got {keep!r} "
                "instead."
            )
        return texts.lengths if keep == "longest" else None
    try:
        ranks = np.asarray(keep, np.float64)
    except (TypeError, ValueError):
        raise InputError("'keep' must have a number for each text. Got others.") from None
    if ranks.shape != texts.lengths.shape or np.isnan(ranks).any():
        raise InputError(
            f"'keep' must have a number for each of the {len(texts.lengths)} texts. Got the shape "
            f"{ranks.shape} and {int(np.isnan(ranks).sum())} that are no numbers."
        )
    return ranks


def _kept_rows(group: _Numbers, ranks: NDArray[np.float64] | _Numbers | None) -> _Numbers:
    """The row kept of the group of each row, ``(n,)``: of several that could be, the first."""
    rows = np.arange(len(group), dtype=np.int32)
    if ranks is not None:
        best = np.full(group.max() + 1, ranks.min())
        np.maximum.at(best, group, ranks)
        rows = rows[ranks == best[group]]
    kept = np.full(group.max() + 1, len(group), np.int32)
    np.minimum.at(kept, group[rows], rows)
    kept_row: _Numbers = kept[group]
    return kept_row
