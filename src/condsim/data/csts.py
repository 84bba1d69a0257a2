"""C-STS: how similar two sentences are with respect to a condition, on a scale from 1 to 5.

The released files are read unchanged: the original ``csts_{train,validation,test}.csv`` (Deshpande
et al., 2023) and the re-annotated ones (Tu et al., 2024; Zhang et al., 2025), whose labels are
written "3", "3.0" or "-1".
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from condsim.data.batch import BlankRows
from condsim.data.files import iter_rows
from condsim.data.labels import LIKERT, Scale, make_labeled_task
from condsim.data.row import Row, number_of
from condsim.data.tasks import compare_split, make_task
from condsim.errors import InputError
from condsim.types import Task

CSTS_COUNTS = {"train": 11342, "validation": 2834, "test": 4732}
"""Published number of rows of ``csts_train.csv`` and so on, 18,908 in all."""

# The released files write -1 where the label is missing or the condition does not apply.
_NO_LABEL = -1.0
_TEXT_COLUMNS = ("sentence1", "sentence2", "condition")
_LOGGER = logging.getLogger(__name__)


class CstsRow(NamedTuple):
    """One row of a C-STS file; the label is None where the row is unlabeled or invalid."""

    sentence1: str
    sentence2: str
    condition: str
    label: float | None


def iter_csts(
    path: Path | str, *, labels: bool = True, blank: BlankRows | None = None
) -> Iterator[CstsRow]:
    """Stream a C-STS file of any size in bounded memory; see `load_csts`.

    The label is None where it is missing, empty, NaN or -1. Without ``labels``, a column of that
    name is ignored.
    """
    for row in _present_rows(path, blank, optional=("label",) if labels else ()):
        sentence1, sentence2, condition = map(row.text, _TEXT_COLUMNS)
        yield CstsRow(sentence1, sentence2, condition, _csts_label(row) if labels else None)


def _present_rows(
    path: Path | str,
    blank: BlankRows | None,
    *,
    required: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
) -> Iterator[Row]:
    blank = blank or BlankRows(strict=True)
    rows = iter_rows(path, columns=(*_TEXT_COLUMNS, *required), optional=optional)
    present = blank.present(rows, _TEXT_COLUMNS, condition=_TEXT_COLUMNS[2])
    return (row for _, row in present)


def load_csts(
    path: Path | str,
    *,
    name: str | None = None,
    require_labels: bool = False,
    blank: BlankRows | None = None,
    scale: Scale | None = None,
) -> Task:
    """Load a file with the columns of C-STS.

    The number of unlabeled rows is logged at level info. A file named as in the original release
    with another number of rows than published is logged as a warning.

    Args:
        path: File with the columns ``sentence1``, ``sentence2``, ``condition`` and perhaps
            ``label``; formats as `condsim.data.files.iter_rows` reads them.
        name: Name of the task; the file's stem by default.
        require_labels: Whether a file without a single labeled row is an error.
        blank: Counts rows without text, which are left out; by default they are rejected.
        scale: Lowest and highest label; told by the labels by default, 1 to 5 in C-STS.

    Returns:
        The validated rows in file order, and NaN where the label is missing, empty, NaN or -1.

    Raises:
        InputError: If the file cannot be read or breaks a rule, or labels are required and no row
            has one.
        MissingExtraError: If the file is Parquet and pyarrow is missing.
    """
    path = Path(path)
    rows = _present_rows(path, blank, optional=("label",))
    task = make_labeled_task(path, rows, _TEXT_COLUMNS, "label", name=name, scale=scale)
    labeled, rest = int(task.valid.sum()), int((~task.valid).sum())
    _LOGGER.info(
        "%s: %d rows, %d labeled, %d unlabeled or invalid", task.name, len(task), labeled, rest
    )
    if path.name.startswith("csts_"):
        compare_split(path, rows=len(task) + (blank.count if blank else 0), published=CSTS_COUNTS)
    if require_labels and not labeled:
        raise InputError(f"{path}: no row has a label in the column 'label'.")
    return task


def load_applicability(
    path: Path | str, *, require_both: bool = True, blank: BlankRows | None = None
) -> Task:
    """Load a C-STS file for whether conditions apply, not for how similar the sentences are.

    Every row must have a label: 1 to 5 in the file becomes 1, the condition applies; -1 becomes 0.
    Unless ``require_both`` is False, rows of both kinds are needed.
    """
    path = Path(path)
    rows = (
        (row.text("sentence1"), row.text("sentence2"), row.text("condition"), _applies(row))
        for row in _present_rows(path, blank, required=("label",))
    )
    task = make_task(path, rows, label_range=(0.0, 1.0), name=None)
    applied = int(task.labels.sum())
    if require_both and applied in (0, len(task)):
        raise InputError(
            f"{path}: needs rows whose condition applies (label 1 to 5) and rows whose condition "
            f"does not (label -1); got {applied} and {len(task) - applied}. 'condsim build weak "
            "--absent' makes rows of the second kind."
        )
    return task


def _csts_label(row: Row) -> float | None:
    value = row.cells["label"]
    label = number_of(value)
    if value in (None, "") or (label is not None and (math.isnan(label) or label == _NO_LABEL)):
        return None
    return row.score("label", label_range=LIKERT, alternative=", or -1 for no label")


def _applies(row: Row) -> float:
    if number_of(row.cells["label"]) == _NO_LABEL:
        return 0.0
    row.score("label", label_range=LIKERT)
    return 1.0
