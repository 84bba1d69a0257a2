"""Encoders: how texts and conditions go into a model, and the three kinds of model.

``conditioning`` needs no extra, so any scorer may use it. The rest needs the ``train`` extra
and is imported on first use, so that a missing extra is one clear line.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from condsim.encoders.conditioning import Order, conditional_sentences, cross_encoder_pairs
from condsim.errors import require

if TYPE_CHECKING:
    from condsim.encoders.backbone import load_backbone, resolve_backbone
    from condsim.encoders.bi_encoder import build_bi_encoder
    from condsim.encoders.cross_encoder import build_cross_encoder, pair_separator
    from condsim.encoders.fusion import Fusion
    from condsim.encoders.loading import load_tri_encoder
    from condsim.encoders.pooling import Pooling
    from condsim.encoders.stored import StoredSentences
    from condsim.encoders.tri_encoder import TriEncoder, build_tri_encoder

__all__ = [
    "Fusion",
    "Order",
    "Pooling",
    "StoredSentences",
    "TriEncoder",
    "build_bi_encoder",
    "build_cross_encoder",
    "build_tri_encoder",
    "conditional_sentences",
    "cross_encoder_pairs",
    "load_backbone",
    "load_tri_encoder",
    "pair_separator",
    "resolve_backbone",
]

_LAZY = {
    "Fusion": "fusion",
    "Pooling": "pooling",
    "StoredSentences": "stored",
    "TriEncoder": "tri_encoder",
    "build_bi_encoder": "bi_encoder",
    "build_cross_encoder": "cross_encoder",
    "build_tri_encoder": "tri_encoder",
    "load_backbone": "backbone",
    "load_tri_encoder": "loading",
    "pair_separator": "cross_encoder",
    "resolve_backbone": "backbone",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type is that of the name asked for
    """Imports a name that needs the ``train`` extra on first use.

    Raises:
        MissingExtraError: If the extra is not installed.
        AttributeError: If there is no such name.
    """
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("torch", extra="train")
    require("sentence_transformers", extra="train")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
