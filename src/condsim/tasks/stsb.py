"""STS-B, the STS Benchmark: how similar two sentences are, with no condition, from 0 to 5.

Reads the released files ``sts-{train,dev,test}.csv`` unchanged (Cer et al., 2017). Despite the name
they are tab separated, without quoting and without a header; some lines end in two more fields,
the sources of the sentences, which are not read.

4,745 of the 5,749 rows of the train file are also in the test sets of STS 2012-2016: what was
trained on it is not to be measured on those.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks.delimited import tsv_records
from condsim.tasks.files import check_file
from condsim.tasks.lines import decoded_lines, open_bytes
from condsim.tasks.published import compare_split
from condsim.tasks.row import place, score_of
from condsim.types import Task

__all__ = ["STSB_COLUMNS", "STSB_COUNTS", "STSB_LABEL_RANGE", "load_stsb"]

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
