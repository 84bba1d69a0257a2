"""Sentence pairs with a gold score and no condition.

Scored pairs have a score from 0 to 1, such as the harvest that a model of contexts scored, or from
0 to 5, as people rate them for STS. The released STS-B files (Cer et al., 2017) have no header.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from condsim.data.files import BlankRows, iter_rows, never_empty, text_lines
from condsim.data.formats import tsv_records
from condsim.data.row import Row, location, number_of
from condsim.data.tasks import compare_split, make_task
from condsim.data.text import file_lines
from condsim.errors import InputError
from condsim.types import Task

STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
"""The fields of a line of STS-B, in order; the files themselves do not name them."""

STSB_COUNTS = {"train": 5749, "dev": 1500, "test": 1379}
"""Published number of rows of each split of STS-B."""

_UNIT_RANGE = (0.0, 1.0)
_STS_RANGE = (0.0, 5.0)
# A cosine that rounding brought above 1 does not turn a file into ratings from 0 to 5.
_MIN_RATING_ABOVE_UNIT = 1.01
_LOGGER = logging.getLogger(__name__)


class ScoredColumns(NamedTuple):
    """The names of the three columns."""

    sentence1: str = "sentence1"
    sentence2: str = "sentence2"
    score: str = "score"


def load_pairs(
    path: Path | str,
    *,
    name: str | None = None,
    columns: ScoredColumns = ScoredColumns(),  # noqa: B008
    label_range: tuple[float, float] | None = None,
    txt_as_tsv: bool = False,
    blank: BlankRows | None = None,
) -> Task:
    """Load a file of sentence pairs with a score each.

    Args:
        path: File with a header; formats as `condsim.data.files.iter_rows` reads them.
        name: Name of the task; the file's stem by default.
        columns: Names of the columns.
        label_range: Lowest and highest score. By default from 0 to 1, or from 0 to 5 if a score is
            above 1.
        txt_as_tsv: Whether to read ``.txt`` as ``.tsv``.
        blank: Counts rows without text, which are left out; by default they are rejected.

    Returns:
        The rows in file order, without conditions, all labeled.
    """
    path = Path(path)
    rows = iter_rows(path, columns=columns, txt_as_tsv=txt_as_tsv)
    if blank is not None and not blank.strict:
        rows = (row for row in rows if not blank.skips(row, columns[:2]))
    if label_range is None:
        label_range = _detected_range(path, columns)
    return task_of_pairs(path, rows, name=name, columns=columns, label_range=label_range)


def task_of_pairs(
    path: Path,
    rows: Iterable[Row],
    *,
    name: str | None,
    columns: ScoredColumns,
    label_range: tuple[float, float],
) -> Task:
    """Make a task of the rows of a file of sentence pairs; see `load_pairs`."""
    first, second, score = columns
    pairs = (
        (row.text(first), row.text(second), None, row.score(score, label_range=label_range))
        for row in rows
    )
    task = make_task(path, pairs, label_range=label_range, name=name)
    _LOGGER.info("%s: %d pairs without conditions, all scored", task.name, len(task))
    return task


def _detected_range(path: Path, columns: ScoredColumns) -> tuple[float, float]:
    for row in iter_rows(path, columns=(columns.score,)):
        score = number_of(row.cells[columns.score])
        if score is not None and score > _MIN_RATING_ABOVE_UNIT:
            return _STS_RANGE
    return _UNIT_RANGE


def is_stsb(path: Path) -> bool:
    """Detect a released STS-B file: its first line has a number in the fifth of 7 fields."""
    try:
        with closing(file_lines(path)) as lines:
            first_line = next((line for line in lines if line.strip("\r\n")), "")
    except InputError:
        return False
    fields = first_line.split("\t")
    return (
        len(fields) >= len(STSB_COLUMNS)
        and number_of(fields[STSB_COLUMNS.index("score")]) is not None
    )


def load_stsb(path: Path | str, *, name: str | None = None) -> Task:
    """Load a released STS-B file: ``sts-train.csv``, ``sts-dev.csv`` or ``sts-test.csv``.

    A number of rows that differs from the published one is logged as a warning.

    Args:
        path: Tab separated text in UTF-8, without a header; blank lines are skipped.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 5.
    """
    path = Path(path)
    records = enumerate(never_empty(path, tsv_records(path, text_lines(path))), start=1)
    rows = (_stsb_row(path, number, line, fields) for number, (line, fields) in records)
    task = make_task(path, rows, label_range=_STS_RANGE, name=name)
    _LOGGER.info("%s: %d pairs without conditions, all scored", task.name, len(task))
    compare_split(path, rows=len(task), published=STSB_COUNTS)
    return task


def _stsb_row(
    path: Path, number: int, line: int, fields: list[str]
) -> tuple[str, str, None, float]:
    if len(fields) < len(STSB_COLUMNS):
        raise InputError(
            f"{location(path, line=line)}: must have at least {len(STSB_COLUMNS)} tab separated "
            f"fields ({', '.join(STSB_COLUMNS)}), got {len(fields)}."
        )
    # The sources of the sentences may follow.
    row = Row(path, number, line, dict(zip(STSB_COLUMNS, map(str.strip, fields), strict=False)))
    score = row.score("score", label_range=_STS_RANGE)
    return row.text("sentence1"), row.text("sentence2"), None, score
