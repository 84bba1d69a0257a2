"""Vectors of the items of a collection: of images (C-STS §2.2.1), a file or their captions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from condsim.annotation.items import Collection
from condsim.cache import kept_rows, sole_process
from condsim.console import Progress
from condsim.errors import InputError, ModelError, require
from condsim.io import sha256_of
from condsim.model.settings import revision_of
from condsim.model.trained import loading_reason
from condsim.rows.near_pairs import caption_vectors, load_text_encoder, unit_length
from condsim.types import FloatArray

# The paper does not say which size.
_IMAGE_ENCODER = "sentence-transformers/clip-ViT-B-32"
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_IMAGES_PER_BLOCK = 256


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
        block=_IMAGES_PER_BLOCK,
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
            captions = caption_vectors(collection.captions, encoder, cache=cache, progress=progress)
            made["text_encoder"] = {"model": encoder.name, "revision": encoder.revision}
            found = mean_vectors(captions, collection) if found is None else found
    return Embeddings(found, captions if cosine else None, made)
