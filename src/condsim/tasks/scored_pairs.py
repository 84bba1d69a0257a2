"""Scored pairs: how similar two sentences are, with no condition, from 0 to 1.

The form of pairs that a model scored rather than people, such as the harvest that SSBC's surrogate
learns from (Sun et al., 2022, §3.4).
"""

from __future__ import annotations

import logging
import math
from array import array
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks.files import scan_rows, stem_of
from condsim.tasks.row import Row, place, shown, text_cell
from condsim.types import Task

__all__ = ["SCORED_PAIR_COLUMNS", "SCORE_RANGE", "load_scored_pairs"]

SCORED_PAIR_COLUMNS = ("sentence1", "sentence2", "score")
"""The columns of a file of scored pairs."""

SCORE_RANGE = (0.0, 1.0)
"""Lowest and highest score."""

_LOGGER = logging.getLogger("condsim")


def load_scored_pairs(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a file of scored pairs.

    A sentence that is in many pairs is held once: a million pairs take some hundred megabytes.

    Args:
        path: File with the columns ``sentence1``, ``sentence2`` and ``score``; formats as
            `condsim.tasks.iter_rows` reads them.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 1.

    Raises:
        InputError: If the file cannot be read or has no rows, a column is missing, a sentence is
            empty or no text, or a score is no number from 0 to 1.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    known: dict[str, str] = {}
    sentences1: list[str] = []
    sentences2: list[str] = []
    scores = array("f")
    for row in scan_rows(path, columns=SCORED_PAIR_COLUMNS):
        for column, sentences in (("sentence1", sentences1), ("sentence2", sentences2)):
            text = text_cell(path, row, column)
            sentences.append(known.setdefault(text, text))
        scores.append(_score(path, row))
    task = Task(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        sentences1=tuple(sentences1),
        sentences2=tuple(sentences2),
        conditions=None,
        labels=np.array(scores, np.float32),
        label_range=SCORE_RANGE,
    )
    _LOGGER.info("%s: %d pairs without conditions, all scored", task.name, len(task))
    return task


def _score(path: Path, row: Row) -> float:
    value = row.cells["score"]
    low, high = SCORE_RANGE
    try:
        score = math.nan if value is None else float(value)
    except (ValueError, OverflowError):
        score = math.nan
    if not low <= score <= high:
        where = place(path, row=row.number, line=row.line, column="score")
        raise InputError(
            f"{where}: must be a number from {low:g} to {high:g}, got {shown(value)}. Map the "
            "scores to that range (of a cosine the part below 0 becomes 0), or remove the row."
        )
    return score
