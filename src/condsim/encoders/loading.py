"""Loading a saved tri-encoder; the other encoders are loaded by sentence-transformers itself."""

from __future__ import annotations

import json
from pathlib import Path

from sentence_transformers import SentenceTransformer

from condsim.encoders.tri_encoder import TriEncoder
from condsim.errors import ModelError

__all__ = ["load_tri_encoder"]


def load_tri_encoder(path: str) -> SentenceTransformer:
    """Loads a saved tri-encoder.

    ``SentenceTransformer(path)`` refuses any module that is not its own unless it may run remote
    code; this needs no such permission, for the class is here.

    Args:
        path: Folder of the saved model.

    Returns:
        The encoder.

    Raises:
        ModelError: If the folder holds no tri-encoder.
    """
    listing = Path(path, "modules.json")
    types = (
        [entry["type"] for entry in json.loads(listing.read_text("utf-8"))]
        if listing.is_file()
        else None
    )
    expected = [f"{TriEncoder.__module__}.{TriEncoder.__name__}"]
    if types != expected:
        raise ModelError(
            f"{path} holds no tri-encoder: its modules.json must list {expected}. "
            f"Got {types or 'no such file'} instead."
        )
    return SentenceTransformer(modules=[TriEncoder.load(path)], similarity_fn_name="cosine")
