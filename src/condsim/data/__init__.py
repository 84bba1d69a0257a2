"""Read data files into rows, and rows into tasks."""

from condsim.data.csts import load_csts
from condsim.data.held_out import held_out_texts, text_digest
from condsim.data.load import load_task
from condsim.data.nli_triplets import load_nli, load_triplets
from condsim.data.rewordings import load_rewordings
from condsim.data.tables import iter_criteria
from condsim.data.tasks import describe, join_tasks, pair_rows
from condsim.data.written import load_written

__all__ = [
    "describe",
    "held_out_texts",
    "iter_criteria",
    "join_tasks",
    "load_csts",
    "load_nli",
    "load_rewordings",
    "load_task",
    "load_triplets",
    "load_written",
    "pair_rows",
    "text_digest",
]
