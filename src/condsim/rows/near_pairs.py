"""Vectors of a collection, of images (C-STS §2.2.1), a file or its captions, and what is near."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.cache import kept_rows, sole_process
from condsim.console import Progress
from condsim.errors import InputError, ModelError, require
from condsim.io import packaged_folder, replacing, sha256_of
from condsim.loading import load_encoder, load_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.settings import revision_of
from condsim.model.trained import loading_reason
from condsim.rows.items import Collection
from condsim.types import FloatArray, IntArray

_IMAGE_ENCODER = "sentence-transformers/clip-ViT-B-32"  # the paper does not say which size
# A general encoder that a package carries, so that no network is needed. The bundled model needs no
# torch, but is trained to compare under a condition; without one it tells near captions from random
# ones less well (docs/construction.md).
_TEXT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_BLOCK = 4096  # captions: about half a minute's work on a slow machine
_IMAGES = 256  # in a block


def unit_length(vectors: FloatArray, *, what: str) -> FloatArray:
    """Scales vectors ``(n, width)`` to length 1, in float32."""
    lengths = np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(
            f"{what}: every embedding must be finite and not zero; row {bad[0]} (from "
            f"0) and {len(bad) - 1} more are not. Compute them again."
        )
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


def find_images(collection: Collection, folder: Path) -> list[Path]:
    """Finds the image of each item: the file of its name, with or without the suffix."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of images. Check the name.")
    by_name: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in _SUFFIXES:
            by_name.setdefault(path.name, []).append(path)
            by_name.setdefault(path.stem, []).append(path)
    missing = [item for item in collection.item_ids if item not in by_name]
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(collection)} items have no image there, the first "
            f"is {missing[0]!r}. An image is named as its item, with a suffix such as .jpg; add "
            "it, or remove the item's captions."
        )
    for item in collection.item_ids:
        if len(by_name[item]) > 1:
            names = " and ".join(path.name for path in by_name[item][:2])
            raise InputError(f"{folder}: the item {item!r} has two images, {names}. Remove one.")
    return [by_name[item][0] for item in collection.item_ids]


def image_vectors(
    paths: Sequence[Path], model: str, *, cache: Path, progress: Progress, device: str | None = None
) -> FloatArray:
    """Embeds images, ``(n, width)``, once for a model and a set of images."""
    pillow = require("PIL.Image", extra="build")
    encoder = _load(model, device)
    digest = hashlib.sha256(f"{model}\0{revision_of(model)}".encode())
    for path in paths:
        status = path.stat()  # the bytes themselves would take as long to read as to embed
        digest.update(f"\0{path.name}\0{status.st_size}\0{status.st_mtime_ns}".encode())

    def embed(start: int, stop: int) -> FloatArray:
        with ExitStack() as stack:
            images = [_open(pillow, path, stack) for path in paths[start:stop]]
            vectors = encoder.encode(images, show_progress_bar=False)
        return unit_length(np.asarray(vectors), what=f"The images {start} to {stop - 1}")

    return kept_rows(
        cache / f"images-{digest.hexdigest()[:12]}.npy",
        embed,
        rows=len(paths),
        block=_IMAGES,
        progress=partial(progress, "images"),
    )


def read_vectors(path: Path, collection: Collection) -> FloatArray:
    """Reads the embeddings of the items, ``(n, width)``, from a file."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read as .npy ({error}). Write it by numpy.save."
        ) from None
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(f"{path}: must hold one array of numbers with two axes, (items, width).")
    if len(vectors) != len(collection):
        raise InputError(
            f"{path}: must have a row for each of the {len(collection)} items of "
            f"{collection.source!r}, in the order of their first caption. Got {len(vectors)} rows; "
            "compute the embeddings from the same file."
        )
    return unit_length(vectors, what=str(path))


def _load(model: str, device: str | None) -> Any:  # noqa: ANN401  (a model of an optional library)
    library = require("sentence_transformers", extra="build")
    from condsim.model.backbone import without_progress_bars

    try:
        with without_progress_bars():
            encoder = library.SentenceTransformer(model, device=device)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise ModelError(
            f"The image encoder {model!r} cannot be loaded: {loading_reason(error)}"
        ) from error
    if not encoder.supports("image"):
        raise ModelError(
            f"The image encoder {model!r} takes {', '.join(map(str, encoder.modalities))}, no "
            "images. Give a CLIP model, such as clip-ViT-B-32."
        )
    return encoder


def _open(pillow: Any, path: Path, stack: ExitStack) -> Any:  # noqa: ANN401  (as above)
    try:
        return stack.enter_context(pillow.open(path)).convert("RGB")
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise InputError(
            f"{path}: cannot be read as an image ({error}). Replace it, or remove the item."
        ) from None


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A model that turns texts into vectors."""

    name: str  # as the caller named it
    revision: str | None  # hash of its files, or its commit; None where that cannot be told
    model: EmbeddingScorer

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Gives vectors of length 1, ``(n, width)``."""
        return unit_length(self.model.encode(list(texts)), what=self.name)


def load_text_encoder(name: str | None = None, *, device: str | None = None) -> TextEncoder:
    """Loads a text encoder.

    Args:
        name: ``default`` for the bundled model; a folder; a name on the Hub; all-MiniLM-L6-v2 if
            None.
        device: Where torch runs; it chooses if None.

    Raises:
        ModelError: If there is no such model, or it compares pairs and has no vectors of texts.
        MissingExtraError: If the model needs torch, which is not installed.
    """
    name = name or _TEXT_ENCODER
    folder = packaged_folder(name)
    model = load_encoder(load_scorer(name if folder is None else str(folder), device=device))
    return TextEncoder(name=name, revision=revision_of(name), model=model)


def caption_vectors(
    collection: Collection, encoder: TextEncoder, *, cache: Path, progress: Progress
) -> FloatArray:
    """Embeds every caption, ``(m, width)``, once for a model and a set of captions."""
    identity = f"{encoder.name}\0{encoder.revision}\0{collection.fingerprint()}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return kept_rows(
        cache / f"captions-{key}.npy",
        lambda start, stop: encoder.encode(collection.captions[start:stop]),
        rows=len(collection.captions),
        block=_BLOCK,
        progress=partial(progress, "captions"),
    )


def mean_vectors(captions: FloatArray, collection: Collection) -> FloatArray:
    """Embeds items by the mean of their captions: ``(m, width)`` becomes ``(n, width)``."""
    sums = np.add.reduceat(captions, collection.starts[:-1], axis=0)  # no item is without captions
    return unit_length(sums, what="The mean of the captions of each item")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of a collection, all of length 1."""

    items: FloatArray  # (n, width)
    captions: FloatArray | None  # (m, width); None where nobody asked for cosines
    provenance: dict[str, Any] = field(default_factory=dict)  # what made them, for the manifest


def embed(
    collection: Collection,
    *,
    cache: Path,
    progress: Progress,
    images: Path | None = None,
    image_encoder: str | None = None,
    embeddings: Path | None = None,
    text_encoder: str | None = None,
    cosine: bool = True,
    device: str | None = None,
) -> Embeddings:
    """Embeds the items of a collection, and its captions where they are needed.

    Args:
        cache: Folder to keep vectors in; a run that was killed goes on from there.
        progress: Called with the stage and how far it is.
        images: Folder of the images of the items.
        image_encoder: CLIP model for them; clip-ViT-B-32 if None.
        embeddings: A ``.npy`` file of vectors of the items. With neither, an item's vector is the
            mean of its captions'.
        text_encoder: Model for the captions; all-MiniLM-L6-v2 if None.
        cosine: Whether the cosines of captions are wanted, also where the items do not need them.
        device: Where torch runs; it chooses if None.

    Returns:
        The vectors of ``items``, ``(n, width)``, of ``captions``, ``(m, width)`` or None, and their
        ``provenance``, for the manifest.

    Raises:
        InputError: If both images and vectors are given, an image is missing or damaged, or the
            file of vectors does not fit.
        ModelError: If a model cannot be loaded.
        MissingExtraError: If an optional library is not installed.
    """
    if images is not None and embeddings is not None:
        raise InputError("Items are embedded by images or by a file of vectors; give one of them.")
    found: FloatArray | None = None
    captions: FloatArray | None = None
    made: dict[str, Any] = {"items": {"by": "mean of captions"}}
    with sole_process(cache):
        if images is not None:
            name = image_encoder or _IMAGE_ENCODER
            paths = find_images(collection, images)
            found = image_vectors(paths, name, cache=cache, progress=progress, device=device)
            made["items"] = {"by": "images", "model": name, "revision": revision_of(name)}
        elif embeddings is not None:
            found = read_vectors(embeddings, collection)
            made["items"] = {"by": "file", "sha256": sha256_of(embeddings)[:12]}
        if found is None or cosine:
            encoder = load_text_encoder(text_encoder, device=device)
            captions = caption_vectors(collection, encoder, cache=cache, progress=progress)
            made["text_encoder"] = {"model": encoder.name, "revision": encoder.revision}
            found = mean_vectors(captions, collection) if found is None else found
    return Embeddings(found, captions if cosine else None, made)


EXACT_UP_TO = 200_000
"""Items up to which every one is compared with every other; more are searched by HNSW."""

_SEARCHED = 2048  # items searched at a time
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
        block=_SEARCHED,
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
