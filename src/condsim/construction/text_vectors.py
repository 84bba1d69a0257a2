"""Embeddings of captions, and of items through their captions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from condsim.construction.items import Collection
from condsim.construction.vector_cache import Progress, cached_rows, unit_length
from condsim.errors import InputError
from condsim.scorers.load import load_scorer
from condsim.scorers.revision import packaged_folder, revision_of
from condsim.types import FloatArray

__all__ = [
    "DEFAULT_TEXT_ENCODER",
    "TextEncoder",
    "caption_vectors",
    "load_text_encoder",
    "mean_vectors",
]

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

        Args:
            texts: The texts, length n, each not empty.

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

    Args:
        collection: The captions.
        encoder: What embeds them.
        cache: Folder to keep them in; a run that was killed goes on from there.
        progress: Is told the captions done.

    Returns:
        Vectors of length 1, ``(m, width)`` float32, read-only.

    Raises:
        InputError: If the cache cannot be written.
    """
    identity = f"{encoder.name}\0{encoder.revision}\0{collection.fingerprint()}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return cached_rows(
        cache / f"captions-{key}.npy",
        lambda start, stop: encoder.encode(collection.captions[start:stop]),
        rows=len(collection.captions),
        block=_BLOCK,
        stage="captions",
        progress=progress,
    )


def mean_vectors(vectors: FloatArray, collection: Collection) -> FloatArray:
    """Embeds items, where there are no images, by the mean of their captions.

    Args:
        vectors: Those of the captions, of length 1, ``(m, width)``.
        collection: Which captions are of which item.

    Returns:
        Vectors of length 1, ``(n, width)`` float32.

    Raises:
        InputError: If the captions of an item cancel out.
    """
    sums = np.add.reduceat(vectors, collection.starts[:-1], axis=0)  # no item is without captions
    return unit_length(sums, what="The mean of the captions of each item")
