"""The harvest: sentence pairs with origin scores, in resumable shards (SSBC §3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.harvest.drawing import (
        PairDrawer as PairDrawer,
        build_single_index as build_single_index,
        open_single_index as open_single_index,
        single_sentence_rows as single_sentence_rows,
        splits_of as splits_of,
    )
    from condsim.contexts.harvest.harvesting import Engine as Engine, harvest as harvest
    from condsim.contexts.harvest.ray import RayEngine as RayEngine
    from condsim.contexts.harvest.stored import (
        FORMAT as FORMAT,
        KINDS as KINDS,
        MANIFEST as MANIFEST,
        SPLITS as SPLITS,
        Harvest as Harvest,
        HarvestSettings as HarvestSettings,
        PairMix as PairMix,
        Pairs as Pairs,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "drawing": (
            "PairDrawer build_single_index open_single_index single_sentence_rows splits_of"
        ),
        "harvesting": "Engine harvest",
        "ray": "RayEngine",
        "stored": "FORMAT Harvest HarvestSettings KINDS MANIFEST PairMix Pairs SPLITS",
    },
    extra="contexts",
)
