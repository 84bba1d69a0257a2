"""C-STS: how similar two sentences are with respect to a condition, on a scale from 1 to 5."""

# The released files are read unchanged: the original ``csts_{train,validation,test}.csv``
# (Deshpande et al., 2023) and the re-annotated ones (Tu et al., 2024; Zhang et al., 2025), whose
# labels are written "3", "3.0" or "-1".

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from condsim.data.pairs import compare_split, make_task
from condsim.data.reading import iter_rows
from condsim.data.row import Row, label_fix, number_of, shown
from condsim.errors import InputError
from condsim.types import Task

LABEL_RANGE = (1.0, 5.0)
"""Lowest and highest label of the Likert scale."""

CSTS_COUNTS = {"train": 11342, "validation": 2834, "test": 4732}
"""Rows of ``csts_train.csv`` and so on as published, 18,908 in all."""

_LOGGER = logging.getLogger("condsim")
_NO_LABEL = -1.0  # as the released files write rows that are unlabelled, or whose condition fails
_COLUMNS = ("sentence1", "sentence2", "condition")


class CstsRow(NamedTuple):
    """One row of a C-STS file.

    Attributes:
        sentence1: The first sentence, not empty.
        sentence2: The second sentence, not empty.
        condition: The condition, not empty.
        label: Similarity from 1 to 5, or None where the row is unlabelled or invalid.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float | None


def iter_csts(path: Path | str, *, labels: bool = True) -> Iterator[CstsRow]:
    """Streams a C-STS file of any size in bounded memory.

    Args:
        path: File with the columns ``sentence1``, ``sentence2``, ``condition`` and perhaps
            ``label``; formats as `condsim.data.reading.iter_rows` reads them.
        labels: Whether to read and check the labels; if False, a column of that name is ignored.

    Yields:
        The rows in file order. The label is None where it is absent, empty, NaN or -1.

    Raises:
        InputError: If the file cannot be read, a sentence or condition is empty or no text, or a
            label is neither a number from 1 to 5 nor -1.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    optional = ("label",) if labels else ()
    for row in iter_rows(path, columns=_COLUMNS, optional=optional):
        yield CstsRow(
            row.text("sentence1"),
            row.text("sentence2"),
            row.text("condition"),
            _label(row) if labels else None,
        )


def load_csts(path: Path | str, *, name: str | None = None, require_labels: bool = False) -> Task:
    """Loads a C-STS file.

    The number of unlabelled rows is logged at level info (logger ``condsim``), also when it is 0;
    another number of rows than published as a warning, where the file is named as in the original
    release.

    Args:
        path: See `iter_csts`.
        name: Name of the task; the file's stem by default.
        require_labels: Whether a file without a single labelled row is an error.

    Returns:
        The validated rows in file order, with labels from 1 to 5 and NaN where the label is
        absent, empty, NaN or -1.

    Raises:
        InputError: See `iter_csts`; also if labels are required and no row has one.
        MissingExtraError: See `iter_csts`.
    """
    path = Path(path)
    read = (
        (first, second, condition, math.nan if label is None else label)
        for first, second, condition, label in iter_csts(path)
    )
    task = make_task(path, read, label_range=LABEL_RANGE, name=name)
    rows, labelled = len(task), int(task.valid.sum())
    counts = (rows, labelled, rows - labelled)
    _LOGGER.info("%s: %d rows, %d labelled, %d unlabelled or invalid", task.name, *counts)
    if path.name.startswith("csts_"):
        compare_split(path, found=rows, published=CSTS_COUNTS)
    if require_labels and not labelled:
        raise InputError(
            f"{path}: labels are needed here, and none of the {rows} rows has one. Give a "
            "file with a column 'label' of numbers from 1 to 5 (-1 means unlabelled)."
        )
    return task


def _label(row: Row) -> float | None:
    value = row.cells["label"]
    label = number_of(value)
    if value in (None, "") or (label is not None and (math.isnan(label) or label == _NO_LABEL)):
        return None
    low, high = LABEL_RANGE
    if label is None or not low <= label <= high:
        raise InputError(
            f"{row.place('label')}: must be a number from {low:g} to {high:g}, or -1 where there "
            f"is no label, got {shown(value)}. "
            f"{label_fix(value, 'Correct it or write -1.', high=high)}"
        )
    return label


def load_applicability(path: Path | str, *, require_both: bool = True) -> Task:
    """Loads a C-STS file for whether conditions apply, not for how similar the sentences are.

    Args:
        path: See `iter_csts`; every row must have a label.
        require_both: Whether there must be rows that apply and rows that do not.

    Returns:
        The rows in file order, with the label 1 where the condition applies (1 to 5 in the file)
        and 0 where it does not (-1); the range of labels is (0, 1).

    Raises:
        InputError: See `iter_csts`; also if a label is missing, or one of the two kinds of rows.
        MissingExtraError: See `iter_csts`.
    """
    path = Path(path)
    rows = (
        (row.text("sentence1"), row.text("sentence2"), row.text("condition"), _applies(row))
        for row in iter_rows(path, columns=(*_COLUMNS, "label"))
    )
    task = make_task(path, rows, label_range=(0.0, 1.0), name=None)
    applied = int(task.labels.sum())
    if require_both and applied in (0, len(task)):
        raise InputError(
            f"{path}: there must be rows whose conditions apply (label 1 to 5) and rows whose "
            f"conditions do not (label -1). Got {applied} and {len(task) - applied}; 'condsim "
            "build weak --absent' makes rows of the second kind."
        )
    return task


def _applies(row: Row) -> float:
    if number_of(row.cells["label"]) == _NO_LABEL:
        return 0.0
    row.score("label", label_range=LABEL_RANGE, fix="Write -1 where the condition does not apply.")
    return 1.0
