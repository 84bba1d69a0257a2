"""What is measured: data files become validated tasks, and their rows high-low pairs.

`load_task` reads a file of C-STS, STS-B or scored pairs, told from its content, into a
`condsim.types.Task`; `load_csts`, `load_stsb` and `load_scored_pairs` read one kind, `iter_csts`
streams C-STS of any size. What is trained on and is no similarity has types of its own: `load_nli`
reads classes, `load_triplets` triplets, and `draw_section_triplets` makes some of running text.
`pair_rows` finds the high and the low row of each sentence pair, `describe` computes statistics.
`iter_rows` reads the rows of any CSV, TSV, JSONL or Parquet file.
"""

from __future__ import annotations

from condsim.tasks.csts import CstsRow, iter_csts, load_csts
from condsim.tasks.files import iter_rows
from condsim.tasks.load import load_task
from condsim.tasks.nli import NLI_CLASSES, NliTask, load_nli
from condsim.tasks.pairs import Pairing, pair_rows
from condsim.tasks.scored_pairs import load_scored_pairs
from condsim.tasks.sections import SectionTriplets, draw_section_triplets
from condsim.tasks.statistics import Lengths, TaskStatistics, describe
from condsim.tasks.stsb import load_stsb
from condsim.tasks.triplets import Triplets, load_triplets, write_triplets

__all__ = [
    "NLI_CLASSES",
    "CstsRow",
    "Lengths",
    "NliTask",
    "Pairing",
    "SectionTriplets",
    "TaskStatistics",
    "Triplets",
    "describe",
    "draw_section_triplets",
    "iter_csts",
    "iter_rows",
    "load_csts",
    "load_nli",
    "load_scored_pairs",
    "load_stsb",
    "load_task",
    "load_triplets",
    "pair_rows",
    "write_triplets",
]
