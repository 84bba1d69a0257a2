"""Suites of conditional data: rows drawn from sets of labelled attributes, and written pairs.

In both, a condition alone tells nothing of the label, so they are measured by Spearman and by pair
accuracy: how often a model ranks two conditions of one text pair as their labels do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from condsim.errors import InputError, unknown_name
from condsim.evaluation.suite.folder import DataFolder, SuiteTask
from condsim.evaluation.suite.slices import SLICES
from condsim.files import sha256_of
from condsim.tasks import is_written, iter_rows, load_written
from condsim.types import Task

GROUPS = ("trained on", "left out of training", "evaluation only")
"""Groups of the sets of criteria, in the order of the tables."""

SLICE_GROUP = "slices"

_ROWS = "dev_rows.csv"
_COLUMNS = ("set", "sentence1", "sentence2", "condition", "label")
_RANGE = (1.0, 5.0)
_FEWEST = 3  # rows of a slice that is measured


def load_criteria_rows(path: Path) -> tuple[SuiteTask, ...]:
    """Loads drawn rows, a data set for each name in the column ``set``, by group."""
    file = path if path.is_file() else DataFolder(path).file(_ROWS)
    if file is None:
        raise InputError(
            f"{path}: has no data of the suite 'criteria'. Looked for {_ROWS}, there and two "
            "levels below; give the file itself if it is called otherwise."
        )
    rows: dict[str, list[tuple[str, str, str, float]]] = {}
    barred: set[str] = set()
    for row in iter_rows(file, columns=_COLUMNS, optional=("use",)):
        name = row.text("set")
        label = row.score("label", label_range=_RANGE, fix="Correct it, or remove the row.")
        texts = (row.text("sentence1"), row.text("sentence2"), row.text("condition"))
        rows.setdefault(name, []).append((*texts, label))
        if row.cells["use"] == GROUPS[2]:
            barred.add(name)
    revision = sha256_of(file)[:12]
    tasks = (
        SuiteTask(
            name,
            name,
            _task(name, revision, found),
            averaged=True,
            group=GROUPS[2 if name in barred else 1],
        )
        for name, found in sorted(rows.items())
    )
    return _by_group(tasks)


def mark_trained(tasks: Sequence[SuiteTask], names: Sequence[str]) -> tuple[SuiteTask, ...]:
    """Puts data sets of the suite ``criteria`` into the group of those trained on.

    Args:
        tasks: What `load_suite` found.
        names: Keys of the data sets that the models were trained on.

    Returns:
        All data sets, those trained on first.

    Raises:
        InputError: If there is no data set of that name.
    """
    known = [task.key for task in tasks]
    for name in names:
        if name not in known:
            raise unknown_name("set of the suite 'criteria'", name, known)
    return _by_group(
        replace(task, group=GROUPS[0]) if task.key in names else task for task in tasks
    )


def _by_group(tasks: Iterable[SuiteTask]) -> tuple[SuiteTask, ...]:
    return tuple(sorted(tasks, key=lambda task: GROUPS.index(str(task.group))))


def _task(name: str, revision: str, rows: list[tuple[str, str, str, float]]) -> Task:
    sentences1, sentences2, conditions, labels = zip(*rows, strict=True)
    gold = np.array(labels, np.float32)
    return Task(name, revision, sentences1, sentences2, conditions, gold, _RANGE)


def load_written_domains(path: Path) -> tuple[SuiteTask, ...]:
    """Loads written pairs, a data set for each domain, by file; then the slices of each file."""
    found = [path] if path.is_file() else sorted(path.glob("*.txt"))
    files = [file for file in found if is_written(file)]
    if not files:
        raise InputError(
            f"{path}: has no data of the suite 'written'. Give a .txt file in the written form, "
            "'domain ||| text 1 ||| text 2 ||| condition = label ; condition = label', or a "
            "folder with such files."
        )
    tasks: list[SuiteTask] = []
    slices: list[SuiteTask] = []
    for file in files:
        task = load_written(file)
        start, end = ("", "") if len(files) == 1 else (f"{task.name}/", f" ({task.name})")
        domains = np.array(task.domains)
        for domain in sorted(set(task.domains)):
            part = task.take(np.flatnonzero(domains == domain))
            key = f"{start}{domain}"
            tasks.append(SuiteTask(key, domain, part, averaged=True, group=task.name))
        for name, rows_of in SLICES.items():
            rows = rows_of(task)
            if len(rows) >= _FEWEST:
                key, title = f"{start}slice:{name}", f"{name}{end}"
                slices.append(SuiteTask(key, title, task.take(rows), group=SLICE_GROUP))
    return (*tasks, *slices)
