"""Files with a header whose rows are two sentences and a score, whatever the columns are called."""

from __future__ import annotations

import logging
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.files import sha256_of
from condsim.tasks.files import scan_rows, stem_of
from condsim.tasks.row import place, score_of, text_cell
from condsim.types import Task

__all__ = ["GradedColumns", "load_graded"]

_LOGGER = logging.getLogger("condsim")


class GradedColumns(NamedTuple):
    """What the three columns are called.

    Attributes:
        sentence1: Name of the column of the first sentence.
        sentence2: Name of the column of the second sentence.
        score: Name of the column of the gold score.
    """

    sentence1: str
    sentence2: str
    score: str


def load_graded(
    path: Path,
    *,
    columns: GradedColumns,
    label_range: tuple[float, float],
    fix: str,
    name: str | None = None,
    txt_as_tsv: bool = False,
) -> Task:
    """Loads a file of sentence pairs with a score each and no conditions.

    A sentence that is in many pairs is held once: a million pairs take some hundred megabytes.

    Args:
        path: File with those columns; formats as `condsim.tasks.iter_rows` reads them.
        columns: Names of the columns; others are ignored.
        label_range: Lowest and highest score.
        fix: What to do about a score out of it, one sentence.
        name: Name of the task; the file's stem by default.
        txt_as_tsv: Whether ``.txt`` is read as ``.tsv``.

    Returns:
        The rows in file order, all labelled.

    Raises:
        InputError: If the file cannot be read or has no rows, a column is missing, a sentence is
            empty or no text, or a score is no number in the range.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    known: dict[str, str] = {}
    sentences1: list[str] = []
    sentences2: list[str] = []
    scores = array("f")
    for row in scan_rows(path, columns=columns, txt_as_tsv=txt_as_tsv):
        for column, sentences in zip(columns[:2], (sentences1, sentences2), strict=True):
            text = text_cell(path, row, column)
            sentences.append(known.setdefault(text, text))
        where = place(path, row=row.number, line=row.line, column=columns.score)
        scores.append(score_of(row.cells[columns.score], where, label_range=label_range, fix=fix))
    task = Task(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        sentences1=tuple(sentences1),
        sentences2=tuple(sentences2),
        conditions=None,
        labels=np.array(scores, np.float32),
        label_range=label_range,
    )
    _LOGGER.info("%s: %d pairs without conditions, all scored", task.name, len(task))
    return task
