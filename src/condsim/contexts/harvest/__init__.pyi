from .drawing import (
    PairDrawer as PairDrawer,
    build_single_index as build_single_index,
    open_single_index as open_single_index,
    single_sentence_rows as single_sentence_rows,
    splits_of as splits_of,
)
from .harvesting import Engine as Engine, harvest as harvest
from .ray import RayEngine as RayEngine
from .stored import (
    FORMAT as FORMAT,
    KINDS as KINDS,
    MANIFEST as MANIFEST,
    SPLITS as SPLITS,
    Harvest as Harvest,
    HarvestSettings as HarvestSettings,
    PairMix as PairMix,
    Pairs as Pairs,
)
