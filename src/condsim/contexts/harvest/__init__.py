"""The harvest: sentence pairs with origin scores, in resumable shards (SSBC §3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.harvest.folder import (
        FORMAT as FORMAT,
        MANIFEST as MANIFEST,
        Harvest as Harvest,
        HarvestSettings as HarvestSettings,
        Pairs as Pairs,
    )
    from condsim.contexts.harvest.harvesting import Engine as Engine, harvest as harvest
    from condsim.contexts.harvest.pairs import (
        KINDS as KINDS,
        SPLITS as SPLITS,
        PairDrawer as PairDrawer,
        PairMix as PairMix,
        build_lone_index as build_lone_index,
        lone_rows as lone_rows,
        open_lone_index as open_lone_index,
        splits_of as splits_of,
    )
    from condsim.contexts.harvest.ray import RayEngine as RayEngine

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "folder": "FORMAT Harvest HarvestSettings MANIFEST Pairs",
        "harvesting": "Engine harvest",
        "pairs": (
            "KINDS PairDrawer PairMix SPLITS build_lone_index lone_rows open_lone_index splits_of"
        ),
        "ray": "RayEngine",
    },
    extra="contexts",
)
