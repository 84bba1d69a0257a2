"""STS 2012-2016: how similar two sentences are, from 0 to 5; each subset of a year is a task.

STS-B was put together from these sets: 4,745 of the 5,749 rows of its train file are also among the
12,544 test rows here. Do not measure a model that was trained on STS-B on STS 2012-2016. The
ratings of Crisscrossed Captions (Parekh et al., 2021), with the text joined in, are read too.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from condsim.data.files import column_names, text_lines
from condsim.data.load import load_pairs
from condsim.data.row import location, score_of
from condsim.data.tasks import compare_count, compare_split, make_task
from condsim.errors import InputError
from condsim.paths import sha256_of
from condsim.types import Task

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
"""Labeled rows of each subset of each year, in the order of SentEval; SMT of 2013 is not public,
and everyone leaves it out."""

_TSV_NAME = re.compile(r"sts(?:20)?(1[2-6])\.(.+?)(?:\.test)?\.tsv(?:\.gz)?", re.IGNORECASE)
_INPUT_NAME = re.compile(r"STS\.input\.(?:surprise\.)?(.+)\.txt")
_LABEL_RANGE = (0.0, 5.0)


def is_sts_input(path: Path) -> bool:
    """Detect SemEval sentence pairs by the name of the file."""
    return _INPUT_NAME.fullmatch(path.name) is not None


def is_sts(path: Path) -> bool:
    """Detect STS 2012-2016 by the name of the file."""
    return subset_of(path) is not None


def subset_of(path: Path) -> tuple[int | None, str] | None:
    """Parse year, None where it does not say, and subset of STS from the name of a file."""
    if named := _TSV_NAME.fullmatch(path.name):
        return 2000 + int(named[1]), named[2]
    if named := _INPUT_NAME.fullmatch(path.name):
        return None, named[1]
    return None


def load_sts(path: Path | str, *, gold: Path | str | None = None, name: str | None = None) -> Task:
    """Load a subset of STS 2012-2016: a table, or ``STS.input.<subset>.txt`` with its gold file.

    Another number of rows than published is logged as a warning (logger ``condsim``) where the
    name of the file tells the year.
    """
    path = Path(path)
    if is_sts_input(path):
        gold = path.with_name(path.name.replace(".input.", ".gs.", 1)) if gold is None else gold
        return _load_semeval(path, Path(gold), name=name)
    task = load_pairs(path, scale=_LABEL_RANGE, name=name)
    year, subset = subset_of(path) or (None, "")
    if year is not None and subset in STS_COUNTS[year]:
        compare_count(str(path), rows=len(task), published=STS_COUNTS[year][subset])
    return task


def _load_semeval(path: Path, gold: Path, *, name: str | None) -> Task:
    """Load a pair of files of SemEval; lines without a gold score are left out."""
    if not gold.is_file():
        raise InputError(
            f"{path}: its gold scores are missing, there is no file {gold.name} next to it. Copy "
            "it there, or give its name."
        )
    texts = _without_end([line.rstrip("\r\n") for line in text_lines(path)], 0)
    scores = _without_end([line.strip() for line in text_lines(gold)], len(texts))
    if len(scores) != len(texts):
        raise InputError(
            f"{gold}: must have one line for each of the {len(texts)} lines of {path.name}, got "
            f"{len(scores)}. The two are of different releases, or one is cut off; copy both again."
        )
    rows = []
    for number, (pair, score) in enumerate(zip(texts, scores, strict=True), start=1):
        if score:
            where = location(gold, line=number)
            value = score_of(score, where, label_range=_LABEL_RANGE)
            rows.append((*_sentences(path, number, pair), None, value))
    if not rows:
        raise InputError(f"{gold}: none of its {len(scores)} lines has a score. Copy it again.")
    if name is None and (subset := subset_of(path)):
        name = subset[1]
    revision = hashlib.sha256(f"{sha256_of(path)} {sha256_of(gold)}".encode()).hexdigest()[:12]
    return make_task(path, rows, label_range=_LABEL_RANGE, name=name, revision=revision)


def _without_end(lines: list[str], count: int) -> list[str]:
    """Drop empty lines at the end beyond ``count`` lines."""
    while len(lines) > count and not lines[-1].strip():
        lines.pop()
    return lines


def _sentences(path: Path, number: int, text: str) -> tuple[str, str]:
    """Check a line; return its two sentences."""
    fields = [field.strip() for field in text.split("\t")]
    where = location(path, line=number)
    if len(fields) not in (2, 4):
        raise InputError(
            f"{where}: must have 2 sentences with a tab between them, or 4 fields as in 2016, got "
            f"{len(fields)} fields. The line is cut off, or a tab is in a sentence."
        )
    if not all(fields[:2]):
        side = "second" if fields[0] else "first"
        raise InputError(
            f"{where}: the {side} sentence must not be empty. Write the text, or remove the line "
            "here and in the gold file."
        )
    return fields[0], fields[1]


STS_YEARS = tuple(STS_COUNTS)
"""The years, from 2012 to 2016."""


def load_sts_year(folder: Path | str, *, year: int) -> tuple[Task, ...]:
    """Load the subsets of a year.

    Other numbers of rows than published are logged as warnings (logger ``condsim``).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Give the folder with the subsets of a year.")
    named = ((subset_of(path), path) for path in sorted(folder.iterdir()) if path.is_file())
    found = {subset: path for subset, path in named if subset is not None}
    if year not in STS_COUNTS:
        raise InputError(f"STS is of the years {STS_YEARS[0]} to {STS_YEARS[-1]}, got {year}.")
    files = {subset: path for (of, subset), path in found.items() if of in (None, year)}
    missing = [subset for subset in STS_COUNTS[year] if subset not in files]
    if missing:
        first = missing[0]
        raise InputError(
            f"{folder}: STS {year} has the subsets {', '.join(STS_COUNTS[year])}; missing: "
            f"{', '.join(missing)}. Add STS.input.{first}.txt and STS.gs.{first}.txt, or "
            f"sts{year % 100}.{first}.test.tsv; load what is there with load_sts."
        )
    tasks = []
    for subset, published in STS_COUNTS[year].items():
        path = files[subset]
        task = load_sts(path, name=f"STS{year % 100}.{subset}")
        # The others were compared when they were loaded.
        if subset_of(path) == (None, subset):
            compare_count(str(path), rows=len(task), published=published)
        tasks.append(task)
    return tuple(tasks)


CXC_STS_COUNTS = {"val": 44009, "test": 44045}
"""Published number of rows of each split of Crisscrossed Captions; 88,054 in all."""

_CXC_COLUMNS = {"score", "caption_id1", "caption_id2"}


def is_cxc_sts(path: Path) -> bool:
    """Detect Crisscrossed Captions by its columns."""
    return set(column_names(path)) >= _CXC_COLUMNS


def load_cxc_sts(path: Path | str, *, name: str | None = None) -> Task:
    """Load a file of Crisscrossed Captions STS with the text joined in; labels are from 0 to 5."""
    path = Path(path)
    task = load_pairs(path, scale=_LABEL_RANGE, name=name)
    compare_split(path, rows=len(task), published=CXC_STS_COUNTS)
    return task
