"""Experiments of similarity from contexts (SSBC), whose rows share corpora, models and terms."""

from experiments.contexts.cases import by_rank as by_rank, drawn_cases as drawn_cases
from experiments.contexts.parts import PartMaker as PartMaker, part_folder as part_folder
from experiments.contexts.plan import Measurement as Measurement, plan_contexts as plan_contexts
from experiments.contexts.terms import (
    BLOCK as BLOCK,
    missing_pairs as missing_pairs,
    stored_blocks as stored_blocks,
    write_blocks as write_blocks,
)
from experiments.contexts.work import FromContextsWork as FromContextsWork
