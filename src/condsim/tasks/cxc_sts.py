"""Crisscrossed Captions STS: how similar two captions of MS-COCO are, from 0 to 5.

The ratings (Parekh et al., 2021) name captions by their ids only; they are read once the text has
been joined: columns ``score``, ``sentence1``, ``sentence2``, ``caption_id1``, ``caption_id2``.
"""

from __future__ import annotations

from pathlib import Path

from condsim.tasks.graded import GradedColumns, compare_split, load_graded
from condsim.types import Task

CXC_STS_COLUMNS = GradedColumns("sentence1", "sentence2", "score")
"""The columns that are read."""

CXC_STS_COUNTS = {"val": 44009, "test": 44045}
"""Rows of each split as published; 88,054 in all."""

CXC_STS_MARKS = ("score", "caption_id1", "caption_id2")
"""Columns that tell the file."""

_RANGE = (0.0, 5.0)


def load_cxc_sts(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a file of Crisscrossed Captions STS with the text joined in.

    Args:
        path: File with the columns ``sentence1``, ``sentence2`` and ``score``; formats as
            `condsim.tasks.iter_rows` reads them.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 5. Another number
        of them than published is warned of (logger ``condsim``); the split is told from the name.

    Raises:
        InputError: If the file cannot be read or has no rows, a column is missing, a sentence is
            empty, or a score is no number from 0 to 5.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    task = load_graded(
        path,
        columns=CXC_STS_COLUMNS,
        label_range=_RANGE,
        fix="Correct it, or remove the row.",
        name=name,
    )
    compare_split(path, found=len(task), published=CXC_STS_COUNTS)
    return task
