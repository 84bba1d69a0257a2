"""STS-B: how similar two sentences are, with no condition, from 0 to 5 (Cer et al., 2017)."""

# The released ``sts-train.csv``, ``sts-dev.csv`` and ``sts-test.csv`` are tab separated without a
# header. GLUE hands out the same rows with a header as ``train.tsv``, ``dev.tsv`` and ``test.tsv``
# (Wang et al., 2019), the last without scores.

from __future__ import annotations

import logging
import math
from pathlib import Path

from condsim.data.formats import tsv_records
from condsim.data.pairs import compare_split, load_graded, make_task
from condsim.data.reading import column_names, iter_rows, text_lines
from condsim.data.row import place, score_of
from condsim.errors import InputError
from condsim.types import Task

STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
"""What the fields of a line are, in order; the files themselves do not name them."""

STSB_COUNTS = {"train": 5749, "dev": 1500, "test": 1379}
"""Rows of each split as published."""

GLUE_MARKS = ("genre", "old_index", "sentence1", "sentence2")
"""Columns that only a file of GLUE has."""

_LABEL_RANGE = (0.0, 5.0)
_LOGGER = logging.getLogger("condsim")


def load_stsb(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a released STS-B file.

    Another number of rows than published is logged as a warning (logger ``condsim``); the name of
    the file tells the split.

    Args:
        path: ``sts-train.csv``, ``sts-dev.csv`` or ``sts-test.csv``, UTF-8; blank lines are
            skipped, and so is the white space around a sentence.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 5.

    Raises:
        InputError: If the file cannot be read or has no rows, a line has fewer than 7 fields, a
            score is no number from 0 to 5, or a sentence is empty.
    """
    path = Path(path)
    rows = (_row(path, *record) for record in tsv_records(path, text_lines(path)))
    task = make_task(path, rows, label_range=_LABEL_RANGE, name=name)
    if not len(task):
        raise InputError(f"{path}: has only blank lines. At least one row of data is needed.")
    _LOGGER.info("%s: %d rows without conditions, all labelled", task.name, len(task))
    compare_split(path, found=len(task), published=STSB_COUNTS)
    return task


def _row(path: Path, line: int, fields: list[str]) -> tuple[str, str, None, float]:
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
        label_range=_LABEL_RANGE,
        fix="Correct it, or remove the line; the file has no header.",
    )
    return cells["sentence1"].strip(), cells["sentence2"].strip(), None, score


def load_stsb_glue(path: Path | str, *, name: str | None = None) -> Task:
    """Loads an STS-B file of GLUE.

    Another number of rows than published is logged as a warning, as by `load_stsb`.

    Args:
        path: ``train.tsv``, ``dev.tsv`` or ``test.tsv``.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, with labels from 0 to 5, or without any where
        the file has no scores.

    Raises:
        InputError: See `load_scored_pairs`; scores are from 0 to 5.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    if "score" in column_names(path):
        task = load_graded(path, label_range=_LABEL_RANGE, name=name)
        compare_split(path, found=len(task), published=STSB_COUNTS)
        return task
    rows = (
        (row.text("sentence1"), row.text("sentence2"), None, math.nan)
        for row in iter_rows(path, columns=("sentence1", "sentence2"))
    )
    return make_task(path, rows, label_range=_LABEL_RANGE, name=name)
