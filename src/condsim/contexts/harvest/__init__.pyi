from .harvesting import (
    Engine as Engine,
    PairDrawer as PairDrawer,
    RayEngine as RayEngine,
    build_single_index as build_single_index,
    harvest as harvest,
    open_single_index as open_single_index,
    single_sentence_rows as single_sentence_rows,
    splits_of as splits_of,
)
from .stored import (
    FORMAT as FORMAT,
    KINDS as KINDS,
    MANIFEST as MANIFEST,
    SPLITS as SPLITS,
    Harvest as Harvest,
    HarvestSettings as HarvestSettings,
    PairMix as PairMix,
)
