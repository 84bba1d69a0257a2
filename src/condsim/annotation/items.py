"""Items with captions, or plain texts, and their vectors."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from condsim.cache import cached_rows, open_array, sole_process
from condsim.console import Progress
from condsim.data.files import iter_rows
from condsim.data.row import short_repr
from condsim.errors import InputError, ModelError, one_line, require
from condsim.io import sha256_of, stem_of
from condsim.model.settings import revision_of
from condsim.model.trained import loading_reason
from condsim.rows.near_pairs import caption_vectors, load_text_encoder, unit_length
from condsim.rows.pairs import item_name
from condsim.types import FloatArray, IntArray

# The paper does not say which size.
_IMAGE_ENCODER = "sentence-transformers/clip-ViT-B-32"
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_IMAGES_PER_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Collection:
    """Items and their captions.

    Attributes:
        revision: First 12 hexadecimal digits of the SHA-256 of the file.
        item_ids: In the order of their first row, length n.
        captions: Grouped by item, length m.
        starts: Index of the first caption of each item, and m, ``(n + 1,)``.
        repeated: Rows left out because their text was there before: for the same item, or, of
            plain texts, at all.
    """

    source: str
    revision: str
    item_ids: tuple[str, ...]
    captions: tuple[str, ...]
    starts: IntArray
    repeated: int

    def __len__(self) -> int:
        return len(self.item_ids)


def read_items(
    path: Path,
    *,
    item_column: str | None = "item_id",
    caption_column: str = "caption",
    source: str | None = None,
) -> Collection:
    """Read items with captions, one in each row, or plain texts.

    Args:
        item_column: The column that names the item. If None, each distinct text is an item, named
            by the first row that has it, such as ``row-1``.
        source: Name of the collection; the file's stem by default.
    """
    columns = [caption_column] if item_column is None else [item_column, caption_column]
    # Dictionaries without values are ordered sets.
    captions: dict[str, dict[str, None]] = defaultdict(dict)
    item_of_text: dict[str, str] = {}
    rows = 0
    for rows, row in enumerate(iter_rows(path, columns=columns), start=1):
        if item_column is None:
            text = row.text(caption_column)
            item = item_of_text.setdefault(text, f"row-{rows}")
        else:
            item = item_name(row, item_column)
            if row.cells[caption_column] in (None, ""):
                raise InputError(
                    f"{row.location(caption_column)}: the caption of the item {short_repr(item)} "
                    "is empty."
                )
            text = row.text(caption_column)
        captions[item][text] = None
    if len(captions) < 2:
        raise InputError(
            f"{path}: pairs need at least two items with different texts, got {len(captions)}. "
            "Check which column names the item."
        )
    texts = tuple(chain.from_iterable(captions.values()))
    return Collection(
        source=stem_of(path) if source is None else source,
        revision=sha256_of(path)[:12],
        item_ids=tuple(captions),
        captions=texts,
        starts=np.cumsum([0, *map(len, captions.values())], dtype=np.int64),
        repeated=rows - len(texts),
    )


def find_images(collection: Collection, folder: Path) -> list[Path]:
    """Find the image of each item: the file with its name, with or without the suffix."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of images.")
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in _IMAGE_SUFFIXES:
            by_name[path.name].append(path)
            by_name[path.stem].append(path)
    missing = [item for item in collection.item_ids if item not in by_name]
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(collection)} items have no image, the first is "
            f"{missing[0]!r}. An image has the name of its item and a suffix such as .jpg."
        )
    paths = [by_name[item] for item in collection.item_ids]
    for item, images in zip(collection.item_ids, paths, strict=True):
        if len(images) > 1:
            names = " and ".join(path.name for path in images)
            raise InputError(f"{folder}: the item {item!r} has two images, {names}.")
    return [path for path, *_ in paths]


def image_vectors(
    paths: Sequence[Path], model: str, *, cache: Path, progress: Progress, device: str | None = None
) -> FloatArray:
    """Embed images, ``(n, width)``, once for a model and a set of images."""
    pillow = require("PIL.Image", extra="build")
    causes = (OSError, SyntaxError, ValueError, pillow.DecompressionBombError)
    encoder = _load_image_encoder(model, device)
    digest = hashlib.sha256(f"{model}\0{revision_of(model)}".encode())
    for path in paths:
        # Reading the bytes themselves would take as long as embedding them.
        status = path.stat()
        digest.update(f"\0{path.name}\0{status.st_size}\0{status.st_mtime_ns}".encode())

    def embed(start: int, stop: int) -> FloatArray:
        with ExitStack() as stack:
            images = []
            for path in paths[start:stop]:
                with one_line(f"{path} cannot be read as an image", *causes):
                    images.append(stack.enter_context(pillow.open(path)).convert("RGB"))
            vectors = encoder.encode(images, show_progress_bar=False)
        return unit_length(np.asarray(vectors), subject=f"The images {start} to {stop - 1}")

    return cached_rows(
        cache / f"images-{digest.hexdigest()[:12]}.npy",
        embed,
        rows=len(paths),
        block=_IMAGES_PER_BLOCK,
        progress=partial(progress, "images"),
    )


def _load_image_encoder(model: str, device: str | None) -> Any:  # noqa: ANN401
    library = require("sentence_transformers", extra="build")
    from condsim.model.builders import without_progress_bars

    try:
        with without_progress_bars():
            encoder = library.SentenceTransformer(model, device=device)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise ModelError(
            f"The image encoder {model!r} cannot be loaded: {loading_reason(error)}"
        ) from error
    if not encoder.supports("image"):
        raise ModelError(
            f"The image encoder {model!r} encodes {', '.join(map(str, encoder.modalities))}, not "
            "images. Use a CLIP model, such as clip-ViT-B-32."
        )
    return encoder


def read_item_vectors(path: Path, collection: Collection) -> FloatArray:
    """Read the embeddings of the items, ``(n, width)``, from a ``.npy`` file."""
    vectors = open_array(path)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(
            f"{path}: must contain one array of numbers with two axes, (items, width)."
        )
    if len(vectors) != len(collection):
        raise InputError(
            f"{path}: must have a row for each of the {len(collection)} items of "
            f"{collection.source!r}, in the order of their first caption; got {len(vectors)} rows."
        )
    return unit_length(vectors, subject=str(path))


def mean_vectors(captions: FloatArray, collection: Collection) -> FloatArray:
    """Embed items by the mean of their captions: ``(m, width)`` becomes ``(n, width)``."""
    sums = np.add.reduceat(captions, collection.starts[:-1], axis=0)
    return unit_length(sums, subject="The mean of the captions of each item")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of length 1 of items, ``(n, width)``, and captions, ``(m, width)``, if needed."""

    items: FloatArray
    captions: FloatArray | None
    provenance: dict[str, Any]


def embed_collection(
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
    """Embed the items of a collection, and its captions if they are needed.

    Items are embedded by a folder of images, by a ``.npy`` file, or by the mean of their captions'
    vectors. An interrupted run continues from the cache.

    Args:
        image_encoder: CLIP model; clip-ViT-B-32 if None.
        text_encoder: Model for the captions; all-MiniLM-L6-v2 if None.
        cosine: Whether to embed the captions even if the items do not need it.
    """
    items: FloatArray | None = None
    captions: FloatArray | None = None
    provenance: dict[str, Any] = {"items": {"by": "mean of captions"}}
    with sole_process(cache):
        if images is not None:
            name = image_encoder or _IMAGE_ENCODER
            paths = find_images(collection, images)
            items = image_vectors(paths, name, cache=cache, progress=progress, device=device)
            provenance["items"] = {"by": "images", "model": name, "revision": revision_of(name)}
        elif embeddings is not None:
            items = read_item_vectors(embeddings, collection)
            provenance["items"] = {"by": "file", "sha256": sha256_of(embeddings)[:12]}
        if items is None or cosine:
            encoder = load_text_encoder(text_encoder, device=device)
            captions = caption_vectors(collection.captions, encoder, cache=cache, progress=progress)
            provenance["text_encoder"] = {"model": encoder.name, "revision": encoder.revision}
            items = mean_vectors(captions, collection) if items is None else items
    return Embeddings(items, captions if cosine else None, provenance)
