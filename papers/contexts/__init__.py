"""Experiments of similarity from contexts (SSBC), whose rows share corpora, models and terms."""

from papers.contexts.cases import by_rank as by_rank, drawn_cases as drawn_cases
from papers.contexts.parts import PartMaker as PartMaker, part_folder as part_folder
from papers.contexts.plan import Measurement as Measurement, plan_contexts as plan_contexts
from papers.contexts.terms import (
    BLOCK as BLOCK,
    missing_pairs as missing_pairs,
    stored_blocks as stored_blocks,
    write_blocks as write_blocks,
)
from papers.contexts.work import FromContextsWork as FromContextsWork
