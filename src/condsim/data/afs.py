"""AFS, Argument Facet Similarity: how alike two arguments on a topic are, from 0 to 5."""

# ``ArgPairs_DP.csv``, ``ArgPairs_GC.csv`` and ``ArgPairs_GM.csv`` (death penalty, gun control, gay
# marriage; Misra et al., 2016), 2,000 pairs each. What is relied on is from public code that reads
# the release, which was not to be had: comma separated, a header, the mean rating in the column
# ``regression_label``; further columns are ignored. The bytes are no UTF-8: text in UTF-8 was once
# taken for Windows-1252 and written as Mac Roman. That is undone for quotation marks and dashes; a
# file in UTF-8 is read as it is.

from __future__ import annotations

import csv
import io
import re
from functools import partial
from pathlib import Path

from condsim.data.formats import csv_records, delimited_rows, open_bytes
from condsim.data.pairs import GradedColumns, compare_count, load_graded
from condsim.data.reading import check_file, never_empty
from condsim.data.row import Wanted
from condsim.errors import InputError
from condsim.types import Task

AFS_COLUMNS = GradedColumns("sentence_1", "sentence_2", "regression_label")

_TOPICS = {f"ArgPairs_{topic}.csv": topic for topic in ("DP", "GC", "GM")}
_LABEL_RANGE = (0.0, 5.0)
_LOOKED_AT = 4096  # bytes; the header is far shorter
_PAIRS = 2000  # of each topic
# Third byte of a mark of UTF-8 (E2 80 xx) that went through Windows-1252 into Mac Roman; "_" stands
# for what Mac Roman lacks.
_MARKS = dict(
    zip(
        b"\xf7\xaa\xcf\x9d\xd2\xd3\xa2_",
        "\u2018\u2019\u201c\u201d\u2013\u2014\u2022\u2026",
        strict=True,
    )
)


def is_afs(path: Path) -> bool:
    """Whether a file is AFS, by its header; lines may end in CR alone, as in old spreadsheets."""
    if path.suffix.lower() != ".csv":
        return False
    try:
        with path.open("rb") as stream:
            start = stream.read(_LOOKED_AT).decode("latin-1")
    except OSError:  # whoever reads the rows says what is wrong
        return False
    header = re.split("[\r\n]", start, maxsplit=1)[0]
    names = {name.strip() for name in next(csv.reader([header]), [])}
    return set(AFS_COLUMNS) <= {name.removeprefix("\xef\xbb\xbf") for name in names}


def load_afs(path: Path | str, *, name: str | None = None) -> Task:
    """Loads the pairs of one topic.

    Another number of rows than the 2,000 published is logged as a warning (logger ``condsim``)
    where the file is named after a topic.

    Args:
        path: ``ArgPairs_DP.csv`` or a file of the same form.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 5.

    Raises:
        InputError: See `load_scored_pairs`; labels are from 0 to 5.
    """
    path = Path(path)
    check_file(path)
    # Not strict: the public readers of the release forgive a stray quote.
    records_of = partial(csv_records, strict=False)
    lines = io.StringIO(_decoded(path), newline="")
    rows = never_empty(path, delimited_rows(records_of, path, lines, Wanted(AFS_COLUMNS)))
    task = load_graded(path, columns=AFS_COLUMNS, label_range=_LABEL_RANGE, name=name, rows=rows)
    if path.name in _TOPICS:
        compare_count(str(path), found=len(task), published=_PAIRS)
    return task


def load_afs_topics(folder: Path | str) -> tuple[Task, ...]:
    """Loads all three topics.

    `join_tasks` makes one task of them, `cross_validation` its folds.

    Args:
        folder: The folder with ``ArgPairs_DP.csv``, ``ArgPairs_GC.csv`` and ``ArgPairs_GM.csv``.

    Returns:
        The topics in this order, named ``AFS.DP``, ``AFS.GC`` and ``AFS.GM``.

    Raises:
        InputError: If a file is missing, or see `load_afs`.
    """
    folder = Path(folder)
    missing = [name for name in _TOPICS if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder}: AFS has a file for each of its three topics; missing: "
            f"{', '.join(missing)}. Copy it there, or load the others one by one."
        )
    return tuple(load_afs(folder / name, name=f"AFS.{topic}") for name, topic in _TOPICS.items())


def _decoded(path: Path) -> str:
    """The text of the file: UTF-8, or else Mac Roman with the marks of UTF-8 set right."""
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
