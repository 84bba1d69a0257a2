"""Which vectors a collection gets: of images, from a file, or of its captions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from condsim.construction.candidates.images import (
    DEFAULT_IMAGE_ENCODER,
    find_images,
    image_vectors,
    read_vectors,
)
from condsim.construction.candidates.items import Collection
from condsim.construction.candidates.vectors import unit_length
from condsim.errors import InputError, require
from condsim.files import sha256_of
from condsim.kept import kept_rows, sole_process
from condsim.loading import load_scorer
from condsim.progress import Progress
from condsim.scorers import packaged_folder, revision_of
from condsim.types import FloatArray

DEFAULT_TEXT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
"""A general encoder that a package carries, so that no network is needed.

The bundled model (``default``) needs no torch, but it is trained to compare *under a condition*;
without one it tells near captions from random ones less well (`docs/construction.md`).
"""

_BLOCK = 4096  # captions: about half a minute's work on a slow machine


class _Encodes(Protocol):
    def encode(self, sentences: Sequence[str]) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A model that turns texts into vectors.

    Attributes:
        name: As the caller named it.
        revision: Hash of its files or its commit; None where that cannot be told.
        model: What encodes.
    """

    name: str
    revision: str | None
    model: _Encodes

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Encodes texts.

        Returns:
            Vectors of length 1, ``(n, width)`` float32.
        """
        return unit_length(self.model.encode(list(texts)), what=self.name)


def load_text_encoder(
    name: str = DEFAULT_TEXT_ENCODER, *, device: str | None = None
) -> TextEncoder:
    """Loads a text encoder.

    Args:
        name: ``default`` for the bundled model; a folder; or a name on the Hub.
        device: Where torch runs; it chooses if None.

    Returns:
        The encoder.

    Raises:
        InputError: If the model compares pairs and has no vectors of single texts.
        ModelError: If there is no such model.
        MissingExtraError: If the model needs torch, which is not installed.
    """
    folder = packaged_folder(name)
    scorer = load_scorer(name if folder is None else str(folder), device=device)
    encode = getattr(scorer, "encode", None)
    if encode is None:
        raise InputError(
            f"The text encoder must give a vector for each text; {name!r} compares pairs and has "
            "none. Give a sentence-transformers model."
        )
    return TextEncoder(name=name, revision=revision_of(name), model=scorer)  # type: ignore[arg-type]


def caption_vectors(
    collection: Collection, encoder: TextEncoder, *, cache: Path, progress: Progress
) -> FloatArray:
    """Embeds every caption, once for a model and a set of captions.

    Returns:
        Vectors of length 1, ``(m, width)`` float32, read-only.
    """
    identity = f"{encoder.name}\0{encoder.revision}\0{collection.fingerprint()}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return kept_rows(
        cache / f"captions-{key}.npy",
        lambda start, stop: encoder.encode(collection.captions[start:stop]),
        rows=len(collection.captions),
        block=_BLOCK,
        progress=partial(progress, "captions"),
    )


def mean_vectors(vectors: FloatArray, collection: Collection) -> FloatArray:
    """Embeds items, where there are no images, by the mean of their captions.

    Args:
        vectors: Those of the captions, of length 1, ``(m, width)``.

    Returns:
        Vectors of length 1, ``(n, width)`` float32.
    """
    sums = np.add.reduceat(vectors, collection.starts[:-1], axis=0)  # no item is without captions
    return unit_length(sums, what="The mean of the captions of each item")


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
