"""What is measured: data files become validated tasks, and their rows high-low pairs.

`load_task` reads a C-STS or STS-B file, told from its content, into a `condsim.types.Task`;
`load_csts` and `load_stsb` read one kind, `iter_csts` streams C-STS of any size;
`pair_rows` finds the high and the low row of each sentence pair, `describe` computes statistics.
`iter_rows` reads the rows of any CSV, TSV, JSONL or Parquet file.
"""

from __future__ import annotations

from condsim.tasks.csts import CstsRow, iter_csts, load_csts
from condsim.tasks.files import iter_rows
from condsim.tasks.load import load_task
from condsim.tasks.pairs import Pairing, pair_rows
from condsim.tasks.statistics import Lengths, TaskStatistics, describe
from condsim.tasks.stsb import load_stsb

__all__ = [
    "CstsRow",
    "Lengths",
    "Pairing",
    "TaskStatistics",
    "describe",
    "iter_csts",
    "iter_rows",
    "load_csts",
    "load_stsb",
    "load_task",
    "pair_rows",
]
