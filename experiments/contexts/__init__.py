"""Experiments of similarity from contexts (SSBC), whose rows share corpora, models and terms."""

from __future__ import annotations

from experiments.contexts.cases import by_rank, drawn_cases
from experiments.contexts.parts import PartMaker, part_folder
from experiments.contexts.plan import Measurement, plan_contexts
from experiments.contexts.terms import BLOCK, missing_pairs, stored_blocks, write_blocks
from experiments.contexts.work import FromContextsWork

__all__ = [
    "BLOCK",
    "FromContextsWork",
    "Measurement",
    "PartMaker",
    "by_rank",
    "drawn_cases",
    "missing_pairs",
    "part_folder",
    "plan_contexts",
    "stored_blocks",
    "write_blocks",
]
