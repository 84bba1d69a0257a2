"""Rows that say whether a condition applies to both sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks.csts import LABEL_RANGE
from condsim.tasks.rows import Row, place, scan_rows, score_of, stem_of, text_cell
from condsim.types import Task

_DOES_NOT_APPLY = -1.0
_COLUMNS = ("sentence1", "sentence2", "condition")


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
    texts: list[tuple[str, ...]] = []
    labels: list[float] = []
    for row in scan_rows(path, columns=(*_COLUMNS, "label")):
        texts.append(tuple(text_cell(path, row, column) for column in _COLUMNS))
        labels.append(_applies(path, row))
    absent = labels.count(0.0)
    if require_both and absent in (0, len(labels)):
        raise InputError(
            f"{path}: there must be rows whose condition applies (label 1 to 5) and rows whose "
            f"condition does not (label -1). Got {len(labels) - absent} and {absent}; 'condsim "
            "build weak --absent' makes rows of the second kind."
        )
    sentences1, sentences2, conditions = zip(*texts, strict=True)
    return Task(
        name=stem_of(path),
        revision=sha256_of(path)[:12],
        sentences1=sentences1,
        sentences2=sentences2,
        conditions=conditions,
        labels=np.array(labels, np.float32),
        label_range=(0.0, 1.0),
    )


def _applies(path: Path, row: Row) -> float:
    value = row.cells["label"]
    where = place(path, row=row.number, line=row.line, column="label")
    try:
        if value is not None and float(value) == _DOES_NOT_APPLY:
            return 0.0
    except (ValueError, OverflowError):
        pass
    score_of(
        value, where, label_range=LABEL_RANGE, fix="Write -1 where the condition does not apply."
    )
    return 1.0
