"""Embeddings of items from images, by a CLIP model (C-STS §2.2.1), or from a file of vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from condsim.construction.candidates.items import Collection
from condsim.construction.candidates.vectors import unit_length
from condsim.errors import InputError, ModelError, require
from condsim.kept import kept_rows
from condsim.progress import Progress
from condsim.scorers import revision_of
from condsim.types import FloatArray

DEFAULT_IMAGE_ENCODER = "sentence-transformers/clip-ViT-B-32"
"""CLIP-ViT as sentence-transformers has it; the paper does not say which size."""

_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_BLOCK = 256  # images


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
    paths: Sequence[Path],
    model: str = DEFAULT_IMAGE_ENCODER,
    *,
    cache: Path,
    progress: Progress,
    device: str | None = None,
) -> FloatArray:
    """Embeds images, once for a model and a set of images.

    Returns:
        Vectors of length 1, ``(n, width)`` float32, read-only.
    """
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
        block=_BLOCK,
        progress=partial(progress, "images"),
    )


def read_vectors(path: Path, collection: Collection) -> FloatArray:
    """Reads the embeddings of the items from a file.

    Returns:
        Vectors of length 1, ``(n, width)`` float32.
    """
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
    from condsim.encoders import without_progress_bars

    try:
        with without_progress_bars():
            encoder = library.SentenceTransformer(model, device=device)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"The image encoder {model!r} cannot be loaded: {reason}") from error
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
