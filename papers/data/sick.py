"""SICK-R: how related two sentences are, with no condition, from 1 to 5.

The files of SemEval-2014 task 1 (Marelli et al., 2014) are read unchanged: ``SICK_train.txt``,
``SICK_trial.txt`` and ``SICK_test_annotated.txt``, tab separated with a header, and ``SICK.txt``,
which contains all three with their names in a column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from condsim.data.files import column_names, iter_rows
from condsim.data.load import ScoredColumns, load_pairs
from condsim.data.tasks import compare_count, compare_split
from condsim.errors import InputError
from condsim.types import Task

SICK_COLUMNS = ScoredColumns("sentence_A", "sentence_B", "relatedness_score")

SICK_COUNTS = {"train": 4500, "trial": 500, "test": 4927}
"""Published number of rows of each split."""

# SSBC §4.3 says 0 to 5, the data do not.
_LABEL_RANGE = (1.0, 5.0)
_SPLIT_COLUMN = "SemEval_set"


def is_sick(path: Path) -> bool:
    """Detect SICK by its columns."""
    return set(SICK_COLUMNS) <= set(column_names(path))


def load_sick(
    path: Path | str,
    *,
    name: str | None = None,
    split: Literal["train", "trial", "test"] | None = None,
) -> Task:
    """Load a file of SICK for relatedness.

    A number of rows that differs from the published one is logged as a warning; the name of the
    file gives the split.
    """
    path = Path(path)
    task = load_pairs(path, name=name, columns=SICK_COLUMNS, scale=_LABEL_RANGE)
    if split is not None:
        task = _take_split(path, task, split)
        compare_count(f"{path}, {split}", rows=len(task), published=SICK_COUNTS[split])
    elif _SPLIT_COLUMN in column_names(path):
        compare_count(str(path), rows=len(task), published=sum(SICK_COUNTS.values()))
    else:
        compare_split(path, rows=len(task), published=SICK_COUNTS)
    return task


def _take_split(path: Path, task: Task, split: str) -> Task:
    rows = iter_rows(path, columns=(_SPLIT_COLUMN,))
    splits = np.array([str(row.cells[_SPLIT_COLUMN]).casefold() for row in rows])
    indices = np.flatnonzero(splits == split)
    if not indices.size:
        raise InputError(f"{path}: the column {_SPLIT_COLUMN!r} has no row {split.upper()!r}.")
    return task.take(indices)
