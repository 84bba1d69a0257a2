"""Vectors of texts, and the pairs of near ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.cache import cached_rows
from condsim.console import Progress
from condsim.errors import InputError, require
from condsim.io import packaged_folder, replacing
from condsim.loading import load_encoder, load_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.settings import revision_of
from condsim.types import FloatArray, IntArray

# A general encoder. The default model needs no torch, but is trained to compare under a condition;
# without one it separates near captions from random ones less well (docs/annotation.md).
_TEXT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
# About half a minute's work on a slow machine.
_TEXTS_PER_BLOCK = 4096
_ITEMS_PER_BLOCK = 2048

EXACT_UP_TO = 200_000
"""Items up to which every one is compared with every other; more are searched by HNSW."""

# Links of an item in the HNSW graph, and candidates for them; FAISS's default is 40.
_HNSW_LINKS, _HNSW_BUILD_WIDTH = 32, 200
_NEIGHBOUR = np.dtype([("item", np.int32), ("similarity", np.float32)])


def unit_length(vectors: FloatArray, *, subject: str) -> FloatArray:
    """Scale vectors ``(n, width)`` to length 1, in float32."""
    lengths = np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(
            f"{subject}: every embedding must be finite and not zero; row {bad[0]} (from 0) and "
            f"{len(bad) - 1} more are not."
        )
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A model that embeds texts; its revision is a hash of its files, its commit or None."""

    name: str
    revision: str | None
    model: EmbeddingScorer

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return vectors of length 1, ``(n, width)``."""
        return unit_length(self.model.encode(list(texts)), subject=self.name)


def load_text_encoder(name: str | None = None, *, device: str | None = None) -> TextEncoder:
    """Load a text encoder.

    The name is ``default``, a folder or a name on the Hub, all-MiniLM-L6-v2 if None. Raises a
    ModelError if there is no such model, or it compares pairs and does not embed texts.
    """
    name = name or _TEXT_ENCODER
    folder = packaged_folder(name)
    model = load_encoder(load_scorer(name if folder is None else str(folder), device=device))
    return TextEncoder(name, revision_of(name), model)


def caption_vectors(
    captions: Sequence[str], encoder: TextEncoder, *, cache: Path, progress: Progress
) -> FloatArray:
    """Embed captions, ``(m, width)``, once for a model and a set of captions."""
    digest = hashlib.sha256(f"{encoder.name}\0{encoder.revision}".encode())
    for caption in captions:
        digest.update(f"\0{caption}".encode())
    return cached_rows(
        cache / f"captions-{digest.hexdigest()[:12]}.npy",
        lambda start, stop: encoder.encode(captions[start:stop]),
        rows=len(captions),
        block=_TEXTS_PER_BLOCK,
        progress=partial(progress, "captions"),
    )


@dataclass(frozen=True, eq=False)
class ItemPairs:
    """Pairs of near items, none twice, none with itself, sorted; the first has the lower number."""

    items1: IntArray  # (pairs,)
    items2: IntArray  # (pairs,)
    similarity: FloatArray  # (pairs,)

    def __len__(self) -> int:
        return len(self.items1)


def nearest_pairs(
    vectors: FloatArray, k: int, *, cache: Path, progress: Progress, exact_up_to: int = EXACT_UP_TO
) -> ItemPairs:
    """Pair each item with its k nearest others; vectors are of length 1, ``(n, width)``."""
    n, k = len(vectors), min(k, len(vectors) - 1)
    exact = n <= exact_up_to
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    digest = hashlib.sha256(vectors.tobytes()).hexdigest()[:12]
    name = f"{digest}-{'exact' if exact else 'hnsw'}"

    @lru_cache
    def index() -> Any:  # noqa: ANN401
        progress("index", 0, n)
        return _make_index(vectors, k, exact=exact, path=cache / f"index-{name}.faiss")

    def search(start: int, stop: int) -> NDArray[np.void]:
        similarity, ids = index().search(vectors[start:stop], k + 1)
        return _without_self(ids, similarity, first=start)

    cache.mkdir(parents=True, exist_ok=True)
    neighbours = cached_rows(
        cache / f"neighbours-{name}-{k}.npy",
        search,
        rows=n,
        block=_ITEMS_PER_BLOCK,
        progress=partial(progress, "neighbours"),
    )
    return _unordered(neighbours["item"], neighbours["similarity"])


def _make_index(vectors: FloatArray, k: int, *, exact: bool, path: Path) -> Any:  # noqa: ANN401
    """Make the index, or read the graph that an earlier run made."""
    faiss = require("faiss", extra="build")
    if exact:
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        return index
    if path.is_file():
        index = faiss.read_index(str(path))
    else:
        index = faiss.IndexHNSWFlat(vectors.shape[1], _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _HNSW_BUILD_WIDTH
        index.add(vectors)
        with replacing(path) as partial_path:
            faiss.write_index(index, str(partial_path))
    index.hnsw.efSearch = max(2 * (k + 1), 64)
    return index


def _without_self(ids: IntArray, similarity: FloatArray, *, first: int) -> NDArray[np.void]:
    """Remove each item from its own neighbors; ``(rows, k + 1)`` becomes ``(rows, k)``."""
    rows, width = ids.shape
    keep = ids != np.arange(first, first + rows)[:, None]
    # Equal vectors may crowd an item out of its list.
    keep[keep.all(axis=1), -1] = False
    neighbours = np.empty((rows, width - 1), _NEIGHBOUR)
    neighbours["item"] = ids[keep].reshape(rows, width - 1)
    neighbours["similarity"] = np.clip(similarity[keep].reshape(rows, width - 1), -1, 1)
    return neighbours


def _unordered(ids: NDArray[np.int32], similarity: FloatArray) -> ItemPairs:
    """Make one pair of both directions; HNSW marks a missing neighbor by -1."""
    n, k = ids.shape
    items = np.repeat(np.arange(n, dtype=np.int64), k)
    neighbours = ids.reshape(-1).astype(np.int64)
    keys = np.minimum(items, neighbours) * n + np.maximum(items, neighbours)
    keys[neighbours < 0] = -1
    unique, indices = np.unique(keys, return_index=True)
    unique, indices = unique[unique >= 0], indices[unique >= 0]
    return ItemPairs(unique // n, unique % n, similarity.reshape(-1)[indices])
