"""Scored pairs: how similar two sentences are, with no condition, from 0 to 1.

The form of pairs that a model scored rather than people, such as the harvest that SSBC's surrogate
learns from (Sun et al., 2022, §3.4).
"""

from __future__ import annotations

import logging
import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.files import sha256_of
from condsim.tasks.rows import place, scan_rows, score_of, stem_of, text_cell
from condsim.types import Task

_LOGGER = logging.getLogger("condsim")


def compare_count(what: str, *, found: int, published: int) -> None:
    """Warns where a data set has another number of rows than published (logger ``condsim``)."""
    if found != published:
        _LOGGER.warning(
            "%s: has %d rows, and %d are published; figures on it are not comparable with "
            "published ones",
            what,
            found,
            published,
        )


def compare_split(path: Path, *, found: int, published: Mapping[str, int]) -> None:
    """Same as `compare_count`, for the split that the name of a file tells."""
    words = re.findall("[a-z]+", path.name.lower())
    named = [split for split in published if split in words]
    if len(named) == 1:
        compare_count(str(path), found=found, published=published[named[0]])


_GRADED_LOGGER = logging.getLogger("condsim")


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
    _GRADED_LOGGER.info("%s: %d pairs without conditions, all scored", task.name, len(task))
    return task


SCORED_PAIR_COLUMNS = GradedColumns("sentence1", "sentence2", "score")
"""The columns of a file of scored pairs."""

SCORE_RANGE = (0.0, 1.0)
"""Lowest and highest score."""


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
    return load_graded(
        Path(path),
        columns=SCORED_PAIR_COLUMNS,
        label_range=SCORE_RANGE,
        fix=(
            "Map the scores to that range (of a cosine the part below 0 becomes 0), or remove the "
            "row."
        ),
        name=name,
    )
