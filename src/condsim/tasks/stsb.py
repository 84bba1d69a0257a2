"""STS-B as GLUE hands it out: the same rows as `condsim.tasks.stsb`, with a header.

Reads ``train.tsv``, ``dev.tsv`` and ``test.tsv`` unchanged (Wang et al., 2019): tab separated, no
quoting, with the columns ``index``, ``genre``, ... ``sentence1``, ``sentence2`` and ``score``. The
test file has no scores.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks.graded import GradedColumns, compare_split, load_graded
from condsim.tasks.rows import (
    check_file,
    column_names,
    decoded_lines,
    open_bytes,
    place,
    scan_rows,
    score_of,
    stem_of,
    text_cell,
    tsv_records,
)
from condsim.types import Task

STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
"""What the fields of a line are, in order; the files themselves do not name them."""

STSB_LABEL_RANGE = (0.0, 5.0)
"""Lowest and highest score."""

STSB_COUNTS = {"train": 5749, "dev": 1500, "test": 1379}
"""Rows of each split as published."""

_LOGGER = logging.getLogger("condsim")


def load_stsb(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a released STS-B file.

    Args:
        path: ``sts-train.csv``, ``sts-dev.csv`` or ``sts-test.csv``, UTF-8; blank lines are
            skipped, and so is the white space around a sentence.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 5. Another number
        of them than published is warned of (logger ``condsim``); the split is told from the name.

    Raises:
        InputError: If the file cannot be read or has no rows, a line has fewer than 7 fields, a
            score is no number from 0 to 5, or a sentence is empty.
    """
    path = Path(path)
    check_file(path)
    with open_bytes(path) as stream:
        records = tsv_records(path, decoded_lines(path, stream))
        rows = [_row(path, line, fields) for line, fields in records]
    if not rows:
        raise InputError(f"{path}: has only blank lines. At least one row of data is needed.")
    sentences1, sentences2, labels = zip(*rows, strict=True)
    task = Task(
        name=path.stem if name is None else name,
        revision=sha256_of(path)[:12],
        sentences1=sentences1,
        sentences2=sentences2,
        conditions=None,
        labels=np.array(labels, np.float32),
        label_range=STSB_LABEL_RANGE,
    )
    _LOGGER.info("%s: %d rows without conditions, all labelled", task.name, len(task))
    compare_split(path, found=len(task), published=STSB_COUNTS)
    return task


def _row(path: Path, line: int, fields: list[str]) -> tuple[str, str, float]:
    """Checks a line; gives its sentences and its score."""
    if len(fields) < len(STSB_COLUMNS):
        raise InputError(
            f"{place(path, line=line)}: must have {len(STSB_COLUMNS)} fields or more, separated by "
            f"tabs ({', '.join(STSB_COLUMNS)}), got {len(fields)}. Either the line is cut off or "
            "this is no released STS-B file."
        )
    cells = dict(zip(STSB_COLUMNS, fields, strict=False))  # the sources of the sentences may follow
    for column in ("sentence1", "sentence2"):
        if not cells[column].strip():
            where = place(path, line=line, column=column)
            raise InputError(f"{where}: must not be empty. Write the text, or remove the line.")
    score = score_of(
        cells["score"],
        f"{place(path, line=line, column='score')} (the fifth)",
        label_range=STSB_LABEL_RANGE,
        fix="Correct it, or remove the line; the file has no header.",
    )
    return cells["sentence1"].strip(), cells["sentence2"].strip(), score


GLUE_MARKS = ("genre", "old_index", "sentence1", "sentence2")
"""Columns that tell the file."""

_COLUMNS = GradedColumns("sentence1", "sentence2", "score")


def load_stsb_glue(path: Path | str, *, name: str | None = None) -> Task:
    """Loads an STS-B file of GLUE.

    Args:
        path: ``train.tsv``, ``dev.tsv`` or ``test.tsv``.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, with labels from 0 to 5, or without any where
        the file has no scores. Another number of them than published is warned of (logger
        ``condsim``); the split is told from the name.

    Raises:
        InputError: If the file cannot be read or has no rows, a column is missing, a sentence is
            empty, or a score is no number from 0 to 5.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    if _COLUMNS.score in column_names(path):
        task = load_graded(
            path,
            columns=_COLUMNS,
            label_range=STSB_LABEL_RANGE,
            fix="Correct it, or remove the row.",
            name=name,
        )
        compare_split(path, found=len(task), published=STSB_COUNTS)
        return task
    pairs = [
        (text_cell(path, row, "sentence1"), text_cell(path, row, "sentence2"))
        for row in scan_rows(path, columns=("sentence1", "sentence2"))
    ]
    sentences1, sentences2 = zip(*pairs, strict=True)
    return Task(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        sentences1=sentences1,
        sentences2=sentences2,
        conditions=None,
        labels=np.full(len(pairs), np.nan, np.float32),
        label_range=STSB_LABEL_RANGE,
    )
