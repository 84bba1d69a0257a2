"""The nearest other items of each item, by FAISS."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, require
from condsim.files import replacing
from condsim.kept import kept_rows
from condsim.progress import Progress
from condsim.types import FloatArray, IntArray

EXACT_UP_TO = 200_000
"""Items up to which every one is compared with every other; more are searched by HNSW."""

_BLOCK = 2048  # items searched at a time
_LINKS = 32  # of an item in the HNSW graph
_BUILD_WIDTH = 200  # candidates looked at when an item is put into it; FAISS's default is 40


@dataclass(frozen=True, eq=False)
class ItemPairs:
    """Pairs of near items, none twice, none with itself, sorted."""

    items1: IntArray  # numbers of the items that come first in the collection, (p,)
    items2: IntArray  # numbers of the others, each higher, (p,)
    similarity: FloatArray  # cosine of the two, (p,)

    def __len__(self) -> int:
        return len(self.items1)


def nearest_pairs(
    vectors: FloatArray, k: int, *, cache: Path, progress: Progress, exact_up_to: int = EXACT_UP_TO
) -> ItemPairs:
    """Pairs each item with its k nearest others; vectors are of length 1, ``(n, width)``."""
    if k < 1:
        raise InputError(f"The number of neighbours 'k' must be 1 or more. Got {k} instead.")
    n, k = len(vectors), min(k, len(vectors) - 1)
    exact = n <= exact_up_to
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    digest = hashlib.sha256(vectors.tobytes()).hexdigest()[:12]
    name = f"{digest}-{'exact' if exact else 'hnsw'}"
    index: Any = None  # of FAISS, whose types change with its version

    def search(start: int, stop: int) -> NDArray[np.void]:
        nonlocal index
        if index is None:
            progress("index", 0, n)
            index = _index(vectors, k, exact=exact, path=cache / f"index-{name}.faiss")
        similarity, ids = index.search(vectors[start:stop], k + 1)
        return _without_self(ids, similarity, first=start)

    cache.mkdir(parents=True, exist_ok=True)
    found = kept_rows(
        cache / f"neighbours-{name}-{k}.npy",
        search,
        rows=n,
        block=_BLOCK,
        progress=partial(progress, "neighbours"),
    )
    return _unordered(found["item"], found["similarity"])


def _index(vectors: FloatArray, k: int, *, exact: bool, path: Path) -> Any:  # noqa: ANN401  (as above)
    """Makes the index, or reads the graph that an earlier run made."""
    faiss = require("faiss", extra="build")
    if exact:
        made = faiss.IndexFlatIP(vectors.shape[1])
        made.add(vectors)
        return made
    if path.is_file():
        made = faiss.read_index(str(path))
    else:
        graph = faiss.IndexHNSWFlat(vectors.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BUILD_WIDTH
        graph.add(vectors)
        with replacing(path) as partial:
            faiss.write_index(graph, str(partial))
        made = graph
    made.hnsw.efSearch = max(2 * (k + 1), 64)
    return made


def _without_self(ids: IntArray, similarity: FloatArray, *, first: int) -> NDArray[np.void]:
    """Leaves the item itself out of its neighbours; (rows, k + 1) becomes (rows, k)."""
    rows, width = ids.shape
    keep = ids != np.arange(first, first + rows)[:, None]
    keep[keep.all(axis=1), -1] = False  # equal vectors may crowd the item out of its own list
    found = np.empty((rows, width - 1), dtype=[("item", np.int32), ("similarity", np.float32)])
    found["item"] = ids[keep].reshape(rows, width - 1)
    found["similarity"] = np.clip(similarity[keep].reshape(rows, width - 1), -1, 1)
    return found


def _unordered(ids: NDArray[np.int32], similarity: FloatArray) -> ItemPairs:
    """Makes one pair of both directions; HNSW marks a neighbour it did not find by -1."""
    n, k = ids.shape
    items = np.repeat(np.arange(n, dtype=np.int64), k)
    others = ids.reshape(-1).astype(np.int64)
    keys = np.minimum(items, others) * n + np.maximum(items, others)
    keys[others < 0] = -1
    unique, places = np.unique(keys, return_index=True)
    unique, places = unique[unique >= 0], places[unique >= 0]
    return ItemPairs(unique // n, unique % n, similarity.reshape(-1)[places])
