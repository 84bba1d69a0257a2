"""Rows that say whether a condition applies to both sentences."""

from __future__ import annotations

from pathlib import Path

from condsim.errors import InputError
from condsim.tasks.csts import LABEL_RANGE
from condsim.tasks.graded import make_task
from condsim.tasks.rows import Row, scan_rows
from condsim.types import Task

_DOES_NOT_APPLY = -1.0


def load_applicability(path: Path | str, *, require_both: bool = True) -> Task:
    """Loads a C-STS file for whether conditions apply, not for how similar the sentences are.

    Args:
        path: File with the columns ``sentence1``, ``sentence2``, ``condition`` and ``label``;
            formats as `condsim.tasks.iter_rows` reads them.
        require_both: Whether there must be rows that apply and rows that do not.

    Returns:
        The rows in file order, with the label 1 where the condition applies (1 to 5 in the file)
        and 0 where it does not (-1); the range of labels is (0, 1).

    Raises:
        InputError: If the file cannot be read, a sentence or condition is empty, a label is neither
            -1 nor a number from 1 to 5, or, if so required, one of the two kinds is missing.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    rows = (
        (row.text("sentence1"), row.text("sentence2"), row.text("condition"), _applies(row))
        for row in scan_rows(path, columns=("sentence1", "sentence2", "condition", "label"))
    )
    task = make_task(path, rows, label_range=(0.0, 1.0), name=None)
    applied = int(task.labels.sum())
    if require_both and applied in (0, len(task)):
        raise InputError(
            f"{path}: there must be rows whose condition applies (label 1 to 5) and rows whose "
            f"condition does not (label -1). Got {applied} and {len(task) - applied}; 'condsim "
            "build weak --absent' makes rows of the second kind."
        )
    return task


def _applies(row: Row) -> float:
    value = row.cells["label"]
    try:
        if value is not None and float(value) == _DOES_NOT_APPLY:
            return 0.0
    except (ValueError, OverflowError):
        pass
    row.score("label", label_range=LABEL_RANGE, fix="Write -1 where the condition does not apply.")
    return 1.0
