"""Sentence pairs with a gold score each and no conditions, and what their loaders share."""

# Scored pairs are pairs that a model scored from 0 to 1 rather than people, such as the harvest
# that SSBC's surrogate learns from (Sun et al., 2022, §3.4). The ratings of Crisscrossed Captions
# STS (Parekh et al., 2021), how similar two captions of MS-COCO are from 0 to 5, are read once the
# text has been joined: ``score``, ``sentence1``, ``sentence2``, ``caption_id1``, ``caption_id2``.

from __future__ import annotations

import logging
import re
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.data.reading import iter_rows, stem_of
from condsim.data.row import Row
from condsim.io import sha256_of
from condsim.types import Task

CXC_STS_COUNTS = {"val": 44009, "test": 44045}
"""Rows of each split of Crisscrossed Captions as published; 88,054 in all."""

CXC_STS_MARKS = ("score", "caption_id1", "caption_id2")
"""Columns that only a file of Crisscrossed Captions has."""

_LOGGER = logging.getLogger("condsim")


class GradedColumns(NamedTuple):
    """The names of the three columns."""

    sentence1: str = "sentence1"
    sentence2: str = "sentence2"
    score: str = "score"


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


def make_task(
    path: Path,
    rows: Iterable[tuple[str, str, str | None, float]],
    *,
    label_range: tuple[float, float],
    name: str | None,
    revision: str | None = None,
) -> Task:
    """Makes a task of the rows of a file: two sentences, the condition or None, and the label."""
    # A text that is in many rows is held once: a million pairs take some hundred megabytes.
    known: dict[str, str] = {}
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    labels = array("f")
    for *texts, label in rows:
        for column, text in zip(columns, texts, strict=True):
            if text is not None:
                column.append(known.setdefault(text, text))
        labels.append(label)
    sentences1, sentences2, conditions = columns
    return Task(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12] if revision is None else revision,
        sentences1=tuple(sentences1),
        sentences2=tuple(sentences2),
        conditions=tuple(conditions) if conditions else None,
        labels=np.array(labels, np.float32),
        label_range=label_range,
    )


def load_graded(
    path: Path,
    *,
    columns: GradedColumns = GradedColumns(),  # noqa: B008  (immutable)
    label_range: tuple[float, float],
    fix: str = "Correct it, or remove the row.",
    name: str | None = None,
    rows: Iterable[Row] | None = None,
) -> Task:
    """Loads a file of sentence pairs with a score each; ``rows`` are those that it has."""
    first, second, score = columns
    pairs = (
        (
            row.text(first),
            row.text(second),
            None,
            row.score(score, label_range=label_range, fix=fix),
        )
        for row in (iter_rows(path, columns=columns) if rows is None else rows)
    )
    task = make_task(path, pairs, label_range=label_range, name=name)
    _LOGGER.info("%s: %d pairs without conditions, all scored", task.name, len(task))
    return task


def load_scored_pairs(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a file of scored pairs.

    Args:
        path: File with the columns ``sentence1``, ``sentence2`` and ``score``; formats as
            `condsim.data.reading.iter_rows` reads them.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 1.

    Raises:
        InputError: If the file cannot be read or has no rows, a column is missing, a sentence is
            empty or no text, or a score is no number from 0 to 1.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    fix = (
        "Map the scores to that range (of a cosine the part below 0 becomes 0), or remove the row."
    )
    return load_graded(Path(path), label_range=(0.0, 1.0), fix=fix, name=name)


def load_cxc_sts(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a file of Crisscrossed Captions STS with the text joined in.

    Another number of rows than published is logged as a warning (logger ``condsim``); the name of
    the file tells the split.

    Args:
        path: See `load_scored_pairs`.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 5.

    Raises:
        InputError: See `load_scored_pairs`; scores are from 0 to 5.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    task = load_graded(path, label_range=(0.0, 5.0), name=name)
    compare_split(path, found=len(task), published=CXC_STS_COUNTS)
    return task
