"""Plain vectors of texts, kept on disk: encoded once, whatever asks for them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.loading import load_encoder
from condsim.model.builders import resolve_backbone
from condsim.model.embedding import EmbeddingScorer
from condsim.model.torch import EncoderScorer


def open_encoder(model: str | Path) -> EmbeddingScorer:
    """Load an encoder by folder or name; it computes in bfloat16 where that is faster."""
    encoder = load_encoder(model)
    return encoder.with_precision("auto") if isinstance(encoder, EncoderScorer) else encoder


class PlainVectors:
    """Vectors of texts without a condition; new ones are encoded and added to a file."""

    def __init__(self, model: str | Path, cache: Path) -> None:
        """Take a model's folder or name, and the path of the cache without its suffix."""
        self._model, self._cache = model, cache
        self._places: dict[str, int] = {}
        self._vectors: NDArray[np.float16] | None = None
        if cache.with_suffix(".npz").is_file():
            stored = np.load(cache.with_suffix(".npz"))
            self._vectors = stored["vectors"]
            self._places = {str(key): place for place, key in enumerate(stored["keys"])}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of the texts, ``(texts, hidden)``."""
        keys = [hashlib.sha256(text.encode()).hexdigest()[:20] for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._places}
        if new:
            self._add(new)
        assert self._vectors is not None
        return self._vectors[[self._places[key] for key in keys]].astype(np.float32)

    def _add(self, new: dict[str, str]) -> None:
        encoder = open_encoder(resolve_backbone(str(self._model)))
        vectors = encoder.encode(list(new.values())).astype(np.float16)
        for key in new:
            self._places[key] = len(self._places)
        former = self._vectors
        self._vectors = vectors if former is None else np.concatenate([former, vectors])
        partial = self._cache.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, keys=np.array(list(self._places)), vectors=self._vectors)
        partial.replace(self._cache.with_suffix(".npz"))
