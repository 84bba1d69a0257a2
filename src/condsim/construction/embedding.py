"""Which vectors a collection gets: of images, from a file, or of its captions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from condsim.construction.images import (
    DEFAULT_IMAGE_ENCODER,
    find_images,
    image_vectors,
    read_vectors,
)
from condsim.construction.items import Collection
from condsim.construction.text_vectors import (
    DEFAULT_TEXT_ENCODER,
    caption_vectors,
    load_text_encoder,
    mean_vectors,
)
from condsim.construction.vector_cache import Progress
from condsim.contexts.locks import sole_process
from condsim.errors import InputError, require
from condsim.files import sha256_of
from condsim.scorers.revision import revision_of
from condsim.types import FloatArray

__all__ = ["Embeddings", "embed"]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of a collection.

    Attributes:
        items: Vectors of the items, of length 1, ``(n, width)``.
        captions: Vectors of the captions by the text encoder, of length 1, ``(m, width)``; None
            where nobody asked for cosines.
        provenance: What made them, for the manifest.
    """

    items: FloatArray
    captions: FloatArray | None
    provenance: dict[str, Any] = field(default_factory=dict)


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
        collection: Items and captions.
        cache: Folder to keep vectors in; a run that was killed goes on from there.
        progress: Is told the stage and how far it is.
        images: Folder of the images of the items.
        image_encoder: CLIP model for them; `DEFAULT_IMAGE_ENCODER` if None.
        embeddings: A ``.npy`` file of vectors of the items. With neither, an item's vector is the
            mean of its captions'.
        text_encoder: Model for the captions; `DEFAULT_TEXT_ENCODER` if None.
        cosine: Whether the cosines of captions are wanted, also where the items do not need them.
        device: Where torch runs; it chooses if None.

    Returns:
        The vectors.

    Raises:
        InputError: If both images and vectors are given, an image is missing or damaged, or the
            file of vectors does not fit.
        ModelError: If a model cannot be loaded.
        MissingExtraError: If an optional library is not installed.
    """
    if images is not None and embeddings is not None:
        raise InputError("Items are embedded by images or by a file of vectors; give one of them.")
    require("filelock", extra="build")
    with sole_process(cache):
        return _embed(
            collection,
            cache=cache,
            progress=progress,
            images=images,
            image_encoder=image_encoder or DEFAULT_IMAGE_ENCODER,
            embeddings=embeddings,
            text_encoder=text_encoder or DEFAULT_TEXT_ENCODER,
            cosine=cosine,
            device=device,
        )


def _embed(
    collection: Collection,
    *,
    cache: Path,
    progress: Progress,
    images: Path | None,
    image_encoder: str,
    embeddings: Path | None,
    text_encoder: str,
    cosine: bool,
    device: str | None,
) -> Embeddings:
    """Does `embed` in a folder that is this process's own."""
    found: FloatArray | None = None
    provenance: dict[str, Any] = {}
    if images is not None:
        found = image_vectors(
            find_images(collection, images),
            image_encoder,
            cache=cache,
            progress=progress,
            device=device,
        )
        provenance["items"] = {
            "by": "images",
            "model": image_encoder,
            "revision": revision_of(image_encoder),
        }
    elif embeddings is not None:
        found = read_vectors(embeddings, collection)
        provenance["items"] = {"by": "file", "sha256": sha256_of(embeddings)[:12]}
    else:
        provenance["items"] = {"by": "mean of captions"}
    captions: FloatArray | None = None
    if found is None or cosine:
        encoder = load_text_encoder(text_encoder, device=device)
        captions = caption_vectors(collection, encoder, cache=cache, progress=progress)
        provenance["text_encoder"] = {"model": encoder.name, "revision": encoder.revision}
        found = mean_vectors(captions, collection) if found is None else found
    return Embeddings(found, captions if cosine else None, provenance)
