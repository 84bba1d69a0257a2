"""STS 2012-2016: how similar two sentences are, with no condition, from 0 to 5; one subset.

Reads the test sets of SemEval (Agirre et al., 2012-2016) as released, a pair of files for each
subset: ``STS.input.<subset>.txt``, two sentences a line with a tab between them (2016: two more
fields, their sources), and ``STS.gs.<subset>.txt``, the gold score of each line, empty where nobody
gave one. Also TSV files with the header ``score``, ``sentence1``, ``sentence2``.
`condsim.tasks.sts_year` puts the subsets of a year together.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks.files import check_file, scan_rows
from condsim.tasks.graded import GradedColumns, load_graded
from condsim.tasks.lines import decoded_lines, open_bytes
from condsim.tasks.published import compare_count
from condsim.tasks.row import Cell, place, score_of
from condsim.types import Task

__all__ = [
    "STS_COLUMNS",
    "STS_COUNTS",
    "STS_LABEL_RANGE",
    "is_sts_input",
    "is_sts_tsv",
    "load_sts",
    "subset_of",
]

STS_COLUMNS = GradedColumns("sentence1", "sentence2", "score")
"""The columns of the TSV form, in which ``score`` comes first."""

STS_LABEL_RANGE = (0.0, 5.0)
"""Lowest and highest score."""

STS_COUNTS: dict[int, dict[str, int]] = {
    2012: {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    2013: {"FNWN": 189, "headlines": 750, "OnWN": 561},
    2014: {
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "images": 750,
        "OnWN": 750,
        "tweet-news": 750,
    },
    2015: {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
    2016: {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}
"""Labelled rows of each subset of each year, in the order of SentEval; SMT of 2013 is not public,
and everyone leaves it out."""

_TSV_NAME = re.compile(r"sts(?:20)?(1[2-6])\.(.+?)(?:\.test)?\.tsv(?:\.gz)?", re.IGNORECASE)
_INPUT_NAME = re.compile(r"STS\.input\.(?:surprise\.)?(.+)\.txt")
_FIX = "Correct it, or remove the row."
_FIX_GOLD = "Correct it, or leave the line empty where there is no gold score."
_ABOVE_ONE = 1.01  # no cosine that rounding brought above 1


def is_sts_input(path: Path) -> bool:
    """Tells a file of sentence pairs of SemEval by its name.

    Args:
        path: A file.

    Returns:
        Whether it is named ``STS.input.<subset>.txt``.
    """
    return _INPUT_NAME.fullmatch(path.name) is not None


def is_sts_tsv(path: Path, columns: Sequence[str]) -> bool:
    """Tells a TSV file of STS from scored pairs, whose scores are from 0 to 1.

    Args:
        path: The file.
        columns: Its columns in order.

    Returns:
        Whether it begins with ``score``, ``sentence1`` and ``sentence2`` and either its name is
        that of a subset or a score is above 1.
    """
    if tuple(columns[:3]) != ("score", "sentence1", "sentence2"):
        return False
    if subset_of(path) is not None:
        return True
    try:
        return any(_above_one(row.cells["score"]) for row in scan_rows(path, columns=("score",)))
    except InputError:
        return False  # whoever loads the file says what is wrong


def _above_one(score: Cell) -> bool:
    try:
        return score is not None and float(score) > _ABOVE_ONE
    except (ValueError, OverflowError):
        return False


def subset_of(path: Path) -> tuple[int | None, str] | None:
    """Tells year and subset from the name of a file.

    Args:
        path: ``STS.input.<subset>.txt``, which does not tell the year, or
            ``sts<year>.<subset>.test.tsv``. The ``surprise.`` of 2012 is left out.

    Returns:
        The year from 2012 to 2016 or None, and the subset; None for other names.
    """
    if named := _TSV_NAME.fullmatch(path.name):
        return 2000 + int(named[1]), named[2]
    if named := _INPUT_NAME.fullmatch(path.name):
        return None, named[1]
    return None


def load_sts(path: Path | str, *, gold: Path | str | None = None, name: str | None = None) -> Task:
    """Loads a subset of STS 2012-2016.

    Args:
        path: A file with the columns ``score``, ``sentence1`` and ``sentence2``, or one named
            ``STS.input.<subset>.txt``.
        gold: Gold scores of the latter; by default the file beside it with ``STS.gs.`` in its name.
        name: Name of the task; the file's stem, or the subset, by default.

    Returns:
        The labelled rows in file order, without conditions, with labels from 0 to 5. Another
        number of rows than published is warned of (logger ``condsim``) where the name of the file
        tells the year.

    Raises:
        InputError: If a file cannot be read or has no rows, a sentence is empty, a score is no
            number from 0 to 5, or the two files have another number of lines.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    if is_sts_input(path):
        gold = path.with_name(path.name.replace(".input.", ".gs.", 1)) if gold is None else gold
        return _load_semeval(path, Path(gold), name=name)
    task = load_graded(path, columns=STS_COLUMNS, label_range=STS_LABEL_RANGE, fix=_FIX, name=name)
    year, subset = subset_of(path) or (None, "")
    if year is not None and subset in STS_COUNTS[year]:
        compare_count(str(path), found=len(task), published=STS_COUNTS[year][subset])
    return task


def _load_semeval(path: Path, gold: Path, *, name: str | None) -> Task:
    """Loads a pair of files of SemEval; lines without a gold score are left out."""
    if not gold.is_file():
        raise InputError(
            f"{path}: its gold scores are missing, there is no file {gold.name} beside it. Copy "
            "it there, or give its name."
        )
    texts = _without_end(_lines(path), 0)
    scores = _without_end([line.strip() for line in _lines(gold)], len(texts))
    if len(scores) != len(texts):
        raise InputError(
            f"{gold}: must have one line for each of the {len(texts)} lines of {path.name}, got "
            f"{len(scores)}. The two are of different releases, or one is cut off; copy both again."
        )
    rows = []
    for number, (pair, score) in enumerate(zip(texts, scores, strict=True), start=1):
        if score:
            where = place(gold, line=number)
            value = score_of(score, where, label_range=STS_LABEL_RANGE, fix=_FIX_GOLD)
            rows.append((*_sentences(path, number, pair), value))
    if not rows:
        raise InputError(f"{gold}: none of its {len(scores)} lines has a score. Copy it again.")
    sentences1, sentences2, labels = zip(*rows, strict=True)
    subset = subset_of(path)
    revision = hashlib.sha256(f"{sha256_of(path)} {sha256_of(gold)}".encode()).hexdigest()
    return Task(
        name=(subset[1] if subset else path.stem) if name is None else name,
        revision=revision[:12],
        sentences1=sentences1,
        sentences2=sentences2,
        conditions=None,
        labels=np.array(labels, np.float32),
        label_range=STS_LABEL_RANGE,
    )


def _without_end(lines: list[str], count: int) -> list[str]:
    """Leaves out empty lines at the end that are more than so many lines."""
    while len(lines) > count and not lines[-1].strip():
        lines.pop()
    return lines


def _lines(path: Path) -> list[str]:
    check_file(path)
    with open_bytes(path) as stream:
        return [line.rstrip("\r\n") for line in decoded_lines(path, stream)]


def _sentences(path: Path, number: int, text: str) -> tuple[str, str]:
    """Checks a line; gives its two sentences."""
    fields = [field.strip() for field in text.split("\t")]
    where = place(path, line=number)
    if len(fields) not in (2, 4):
        raise InputError(
            f"{where}: must have 2 sentences with a tab between them, or 4 fields as in 2016, got "
            f"{len(fields)} fields. The line is cut off, or a tab is in a sentence."
        )
    if not fields[0] or not fields[1]:
        side = "first" if not fields[0] else "second"
        raise InputError(
            f"{where}: the {side} sentence must not be empty. Write the text, or remove the line "
            "here and in the gold file."
        )
    return fields[0], fields[1]
