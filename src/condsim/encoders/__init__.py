"""Encoders: how texts and conditions go into a model, and the three kinds of model.

``conditioning`` needs no extra, so any scorer may use it. The rest needs the ``train`` extra
and is imported on first use, so that a missing extra is one clear line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.encoders.backbone import (
        activation_of as activation_of,
        dropout_of as dropout_of,
        load_backbone as load_backbone,
        resolve_backbone as resolve_backbone,
        without_progress_bars as without_progress_bars,
    )
    from condsim.encoders.bi_encoder import build_bi_encoder as build_bi_encoder
    from condsim.encoders.conditioning import (
        Order as Order,
        check_order as check_order,
        conditional_sentences as conditional_sentences,
        cross_encoder_pairs as cross_encoder_pairs,
    )
    from condsim.encoders.cross_encoder import (
        build_cross_encoder as build_cross_encoder,
        pair_separator as pair_separator,
    )
    from condsim.encoders.pooling import Fusion as Fusion, LowRank as LowRank, Pooling as Pooling
    from condsim.encoders.stored import (
        StoredSentences as StoredSentences,
        load_tri_encoder as load_tri_encoder,
    )
    from condsim.encoders.tri_encoder import (
        TriEncoder as TriEncoder,
        build_tri_encoder as build_tri_encoder,
        distinct_rows as distinct_rows,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "backbone": "activation_of dropout_of load_backbone resolve_backbone without_progress_bars",
        "bi_encoder": "build_bi_encoder",
        "conditioning": "Order check_order conditional_sentences cross_encoder_pairs",
        "cross_encoder": "build_cross_encoder pair_separator",
        "pooling": "Fusion LowRank Pooling",
        "stored": "StoredSentences load_tri_encoder",
        "tri_encoder": "TriEncoder build_tri_encoder distinct_rows",
    },
    extra="train",
)
