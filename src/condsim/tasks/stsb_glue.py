"""STS-B as GLUE hands it out: the same rows as `condsim.tasks.stsb`, with a header.

Reads ``train.tsv``, ``dev.tsv`` and ``test.tsv`` unchanged (Wang et al., 2019): tab separated, no
quoting, with the columns ``index``, ``genre``, ... ``sentence1``, ``sentence2`` and ``score``. The
test file has no scores.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condsim.files import sha256_of
from condsim.tasks.columns import column_names
from condsim.tasks.files import scan_rows, stem_of
from condsim.tasks.graded import GradedColumns, load_graded
from condsim.tasks.published import compare_split
from condsim.tasks.row import text_cell
from condsim.tasks.stsb import STSB_COUNTS, STSB_LABEL_RANGE
from condsim.types import Task

__all__ = ["GLUE_MARKS", "load_stsb_glue"]

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
