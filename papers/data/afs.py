"""AFS, Argument Facet Similarity: how alike two arguments on a topic are, from 0 to 5.

``ArgPairs_DP.csv``, ``ArgPairs_GC.csv`` and ``ArgPairs_GM.csv`` (death penalty, gun control, gay
marriage; Misra et al., 2016) have 2,000 pairs each. The release was not available to us; the
columns are those that public code reads: comma separated, a header, the mean rating in the column
``regression_label``. The bytes are not UTF-8: text in UTF-8 was once read as Windows-1252 and
written as Mac Roman. That is undone for quotation marks and dashes.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.data.files import check_file, never_empty
from condsim.data.load import ScoredColumns, task_of_pairs
from condsim.data.readers import csv_records, table_rows
from condsim.data.row import ColumnSelection
from condsim.data.tasks import compare_count, draw_folds
from condsim.data.text import open_bytes
from condsim.errors import InputError
from condsim.types import Task

AFS_COLUMNS = ScoredColumns("sentence_1", "sentence_2", "regression_label")

_TOPICS = {f"ArgPairs_{topic}.csv": topic for topic in ("DP", "GC", "GM")}
_LABEL_RANGE = (0.0, 5.0)
_HEADER_BYTES = 4096
_PAIRS_PER_TOPIC = 2000
# Third byte of a mark of UTF-8 (E2 80 xx) that went through Windows-1252 into Mac Roman; "_" stands
# for a character that Mac Roman lacks.
_MARKS = dict(
    zip(
        b"\xf7\xaa\xcf\x9d\xd2\xd3\xa2_",
        "\u2018\u2019\u201c\u201d\u2013\u2014\u2022\u2026",
        strict=True,
    )
)


def is_afs(path: Path) -> bool:
    """Detect AFS by its header; lines may end in CR alone, as in old spreadsheets."""
    if path.suffix.lower() != ".csv":
        return False
    try:
        with path.open("rb") as stream:
            start = stream.read(_HEADER_BYTES).decode("latin-1")
    except OSError:
        return False
    header = re.split("[\r\n]", start, maxsplit=1)[0]
    names = {name.strip() for name in next(csv.reader([header]), [])}
    return set(AFS_COLUMNS) <= {name.removeprefix("\xef\xbb\xbf") for name in names}


def load_afs(path: Path | str, *, name: str | None = None) -> Task:
    """Load the pairs of one topic, ``ArgPairs_DP.csv`` or a file of the same form."""
    path = Path(path)
    check_file(path)
    # A stray quote is accepted, as by the public readers of the release.
    records = csv_records(path, io.StringIO(_decode(path), newline=""), strict=False)
    rows = never_empty(path, table_rows(path, records, ColumnSelection(AFS_COLUMNS)))
    task = task_of_pairs(path, rows, name=name, columns=AFS_COLUMNS, scale=_LABEL_RANGE)
    if path.name in _TOPICS:
        compare_count(str(path), rows=len(task), published=_PAIRS_PER_TOPIC)
    return task


def load_afs_topics(folder: Path | str) -> tuple[Task, ...]:
    """Load all three topics of a folder, named ``AFS.DP``, ``AFS.GC`` and ``AFS.GM``.

    `join_tasks` makes one task of them, `cross_validation` its folds.
    """
    folder = Path(folder)
    missing = [name for name in _TOPICS if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder}: AFS has a file for each of its three topics; missing: {', '.join(missing)}."
        )
    return tuple(load_afs(folder / name, name=f"AFS.{topic}") for name, topic in _TOPICS.items())


def _decode(path: Path) -> str:
    """Decode a file: UTF-8, or else Mac Roman with the marks of UTF-8 repaired."""
    with open_bytes(path) as stream:
        data = stream.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        first, *parts = data.split(b"\x89\xdb")
        texts = [first.decode("mac_roman")]
        for part in parts:
            mark = _MARKS.get(part[0]) if part else None
            rest = b"\x89\xdb" + part if mark is None else part[1:]
            texts.append((mark or "") + rest.decode("mac_roman"))
        return "".join(texts)


class Fold(NamedTuple):
    """A fold to test on, and all other folds to train on."""

    train: Task
    test: Task


def cross_validation(task: Task, *, folds: int = 10, seed: int = 0) -> tuple[Fold, ...]:
    """Split the labeled rows of a task for cross-validation, as AFS needs it (SSBC §4.4).

    Rows of one sentence pair, in either order, share a fold, whatever the order of the rows. A
    sentence may be in pairs of several folds: in AFS they mostly are, as in all published results.
    """
    task = task.labeled()
    pairs = [(min(pair), max(pair)) for pair in zip(task.sentences1, task.sentences2, strict=True)]
    if folds < 2 or len(set(pairs)) < folds:
        raise InputError(
            f"{task.name}: {folds} folds; expected at least 2, and at most the {len(set(pairs))} "
            "labeled sentence pairs."
        )
    fold = draw_folds(pairs, folds=folds, seed=seed)
    return tuple(
        Fold(task.take(np.flatnonzero(fold != number)), task.take(np.flatnonzero(fold == number)))
        for number in range(folds)
    )
