"""What is measured: data files become validated tasks, and their rows high-low pairs.

`load_task` reads a file of similarities of any kind, told from its content, into a
`condsim.types.Task`; `load_csts`, `load_stsb`, `load_sts`, `load_sick` and so on read one kind,
`iter_csts` streams C-STS of any size. `load_sts_year` and `load_afs_topics` read a folder of
subsets, `join_tasks` makes one task of several, `cross_validation` folds of one. What is trained on
and is no similarity has types of its own: `load_nli` reads classes, `load_triplets` triplets, and
`draw_section_triplets` makes some of running text. `pair_rows` finds the high and the low row of
each sentence pair, `describe` computes statistics. `iter_rows` reads the rows of any CSV, TSV,
JSONL or Parquet file.
"""

from __future__ import annotations

from condsim.tasks.afs import load_afs, load_afs_topics
from condsim.tasks.csts import CstsRow, iter_csts, load_csts
from condsim.tasks.cxc_sts import load_cxc_sts
from condsim.tasks.files import iter_rows
from condsim.tasks.folds import Fold, cross_validation
from condsim.tasks.load import load_task
from condsim.tasks.nli import NLI_CLASSES, NliTask, load_nli
from condsim.tasks.pairs import Pairing, pair_rows
from condsim.tasks.scored_pairs import load_scored_pairs
from condsim.tasks.sections import SectionTriplets, draw_section_triplets
from condsim.tasks.sick import load_sick
from condsim.tasks.statistics import Lengths, TaskStatistics, describe
from condsim.tasks.sts import load_sts
from condsim.tasks.sts_year import STS_YEARS, join_tasks, load_sts_year
from condsim.tasks.stsb import load_stsb
from condsim.tasks.stsb_glue import load_stsb_glue
from condsim.tasks.triplets import Triplets, load_triplets, write_triplets

__all__ = [
    "NLI_CLASSES",
    "STS_YEARS",
    "CstsRow",
    "Fold",
    "Lengths",
    "NliTask",
    "Pairing",
    "SectionTriplets",
    "TaskStatistics",
    "Triplets",
    "cross_validation",
    "describe",
    "draw_section_triplets",
    "iter_csts",
    "iter_rows",
    "join_tasks",
    "load_afs",
    "load_afs_topics",
    "load_csts",
    "load_cxc_sts",
    "load_nli",
    "load_scored_pairs",
    "load_sick",
    "load_sts",
    "load_sts_year",
    "load_stsb",
    "load_stsb_glue",
    "load_task",
    "load_triplets",
    "pair_rows",
    "write_triplets",
]
