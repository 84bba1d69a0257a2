"""SICK-R: how related two sentences are, with no condition, from 1 to 5."""

# The files of SemEval-2014 task 1 (Marelli et al., 2014) are read unchanged: ``SICK_train.txt``,
# ``SICK_trial.txt`` and ``SICK_test_annotated.txt``, tab separated with a header, and ``SICK.txt``,
# which holds all three with their names in a column.

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from condsim.data.pairs import GradedColumns, compare_count, compare_split, load_graded
from condsim.data.reading import column_names, iter_rows
from condsim.errors import InputError
from condsim.types import Task

SICK_COLUMNS = GradedColumns("sentence_A", "sentence_B", "relatedness_score")

SICK_COUNTS = {"train": 4500, "trial": 500, "test": 4927}
"""Rows of each split as published."""

_LABEL_RANGE = (1.0, 5.0)  # SSBC §4.3 says 0 to 5, the data do not
_SPLIT = "SemEval_set"


def load_sick(
    path: Path | str,
    *,
    name: str | None = None,
    split: Literal["train", "trial", "test"] | None = None,
) -> Task:
    """Loads a file of SICK for relatedness.

    Another number of rows than published is logged as a warning (logger ``condsim``); the name of
    the file tells the split.

    Args:
        path: File with the columns ``sentence_A``, ``sentence_B`` and ``relatedness_score``;
            ``.txt`` is read as ``.tsv``, other formats as by `iter_rows`.
        name: Name of the task; the file's stem by default.
        split: The rows to take of a file with the column ``SemEval_set``; all by default.

    Returns:
        The rows in file order, without conditions, each with a label from 1 to 5.

    Raises:
        InputError: See `load_scored_pairs`, with scores from 1 to 5; also if there is no such
            split.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    task = load_graded(
        path,
        columns=SICK_COLUMNS,
        label_range=_LABEL_RANGE,
        fix="Correct it, or remove the row; take the annotated test file.",
        name=name,
        rows=iter_rows(path, columns=SICK_COLUMNS, txt_as_tsv=True),
    )
    if split is not None:
        task = _take_split(path, task, split)
        compare_count(f"{path}, {split}", found=len(task), published=SICK_COUNTS[split])
    elif _SPLIT in column_names(path):
        compare_count(str(path), found=len(task), published=sum(SICK_COUNTS.values()))
    else:
        compare_split(path, found=len(task), published=SICK_COUNTS)
    return task


def _take_split(path: Path, task: Task, split: str) -> Task:
    if split not in SICK_COUNTS:
        raise InputError(f"SICK has the splits {', '.join(SICK_COUNTS)}. Got {split!r} instead.")
    rows = iter_rows(path, columns=(_SPLIT,), txt_as_tsv=True)
    named = [str(row.cells[_SPLIT]).casefold() for row in rows]
    kept = np.flatnonzero(np.array(named) == split)
    if not kept.size:
        raise InputError(
            f"{path}: the column {_SPLIT!r} names no row {split.upper()!r}. It must hold TRAIN, "
            "TRIAL and TEST."
        )
    return task.take(kept)
