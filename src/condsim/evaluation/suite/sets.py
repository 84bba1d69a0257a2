"""The data sets of a suite: where they lie, and those that have conditions."""

# Conditional suites are rows drawn from sets of labelled attributes, and written pairs. In both a
# condition alone tells nothing of the label, so they are measured by Spearman and by how often a
# model ranks two conditions of one text pair as their labels do. The slices of written pairs are
# those on which small encoders fail; words decide what is in them, so that a slice is the same for
# every model.

from __future__ import annotations

import fnmatch
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.data.reading import iter_rows
from condsim.data.sts import STS_COUNTS, subset_of
from condsim.data.written import is_written, load_written
from condsim.errors import InputError, unknown_name
from condsim.io import sha256_of
from condsim.types import IntArray, Task


@dataclass(frozen=True, eq=False)
class SuiteTask:
    """A data set of a suite: a column of the table.

    Attributes:
        key: Short name without spaces, such as ``sts12``; unique in a suite.
        title: Name in tables, such as ``STS12``.
        task: The labelled rows, one subset after the other; for triplets their pairs, those with
            the positive first.
        subsets: Rows of each subset in order; empty if there are none.
        triplets: Whether accuracy on triplets is measured rather than correlation.
        train: Rows that baselines may learn from, if any.
        averaged: Whether it counts in the mean: of STS, that of SSBC Table 2.
        published: Whether it has all the rows that published numbers are of.
        names: Names of the subsets.
        group: Heading that it stands under, such as ``left out of training``. Sets with a group
            are measured by Spearman and pair accuracy, and each group has a mean.
    """

    key: str
    title: str
    task: Task
    subsets: tuple[int, ...] = ()
    triplets: bool = False
    train: Task | None = None
    averaged: bool = False
    published: bool = True
    names: tuple[str, ...] = ()
    group: str | None = None

    @property
    def revision(self) -> str:
        """Version of the data."""
        return self.task.revision

    def bounds(self) -> list[slice]:
        """Where each subset is among the rows."""
        ends = np.cumsum(self.subsets or (len(self.task),)).tolist()
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


_DEPTH = 2
_YEAR_IN_NAME = re.compile(r"(?:sts.{0,3}?(?:20)?|(?<!\d)20)(1[2-6])(?!\d)", re.IGNORECASE)


class DataFolder:
    """The files of a folder, the shallow ones first and then by name."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(
                f"{root}: no such folder. A suite needs the folder that has the data sets in it, "
                "each in a folder of its own."
            )
        self.root = root
        self._files = dict(_listed(root))

    def file(self, *names: str, of: str | None = None) -> Path | None:
        """The first file of one of these names, below a folder whose name has ``of`` in it."""
        root = self.root.resolve().name
        paths = [
            folder / file
            for folder, files in self._files.items()
            if of is None or of in f"{root}/{folder.relative_to(self.root)}".casefold()
            for file in files
        ]
        found = (
            path for name in names for path in paths if path.name.casefold() == name.casefold()
        )
        return next(found, None)

    def folder_of(self, pattern: str) -> Path | None:
        """The first folder with a file that matches."""
        matching = (place for place, files in self._files.items() if fnmatch.filter(files, pattern))
        return next(matching, None)

    def sts_year(self, year: int) -> Path | None:
        """Finds the folder with the subsets of a year of STS."""
        for folder, files in self._files.items():
            found = [named for file in files if (named := subset_of(Path(file))) is not None]
            if any(of == year for of, _ in found):
                return folder
            yearless = {subset for of, subset in found if of is None}
            years = _YEAR_IN_NAME.findall(folder.name)
            if yearless and years:
                if f"{year % 100}" in years:
                    return folder
            elif yearless >= set(STS_COUNTS[year]):
                return folder
        return None


def _listed(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with the names of their files, breadth first."""
    queue = deque([(root, 0)])
    while queue:
        folder, depth = queue.popleft()
        try:
            entries = sorted((entry.name, entry.is_dir()) for entry in os.scandir(folder))
        except OSError as error:
            raise InputError(f"{folder}: cannot be listed ({error.strerror}).") from error
        yield folder, [name for name, is_folder in entries if not is_folder]
        if depth < _DEPTH:
            inner = (name for name, is_folder in entries if is_folder and name[0] != ".")
            queue += [(folder / name, depth + 1) for name in inner]


_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")

NEGATIONS = frozenset(
    "no not none nobody nothing nowhere never neither nor without cannot hardly barely scarcely "
    "aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont "
    "wouldnt".split()
)
"""Words that negate; words that end in ``n't`` do, too, and those above without an apostrophe are
how people type them."""

NUMBERS = frozenset(
    "age amount amounts budget cost costs count date day days deadline depth distance dose doses "
    "duration fee fees frequency height hours length mileage minutes month months number numbers "
    "percentage period population price prices quantity quantities salary size speed temperature "
    "time times total weekday weight width year years".split()
)
"""Words of conditions that ask for a number, a quantity, a time or a price."""

NUMBER_QUESTIONS = (
    *("how many", "how much", "how long", "how often", "how far", "how old", "how soon"),
    *("how early", "how late", "how fast", "how quickly", "how tall", "how big", "how heavy"),
    *("when", "until when", "since when", "at what time"),
)
"""Beginnings of conditions that ask for one."""

NO_NUMBERS = frozenset(
    "opinion opinions attitude thinks feels feeling satisfaction direction kind type".split()
)
"""Words of conditions that ask for something else, as in "the opinion about the price"."""


def has_negation(text: str) -> bool:
    """Whether a text holds a word of `NEGATIONS` or one that ends in ``n't``, in any case.

    Example:
        >>> [has_negation(text) for text in ("It doesn't fit.", "It fits.", "Dont buy it")]
        [True, False, True]
    """
    words = (word.lower().replace("\u2019", "'") for word in _WORD.findall(text))
    return any(word in NEGATIONS or word.endswith("n't") for word in words)


def asks_for_number(condition: str) -> bool:
    """Whether a condition asks for a number, a quantity, a time or a price.

    Example:
        >>> conditions = ("waiting time", "How many guests?", "the opinion about the price")
        >>> [asks_for_number(condition) for condition in conditions]
        [True, True, False]
    """
    words = _WORD.findall(condition.lower())
    if NO_NUMBERS.intersection(words):
        return False
    begins = f"{' '.join(words)} ".startswith(tuple(f"{start} " for start in NUMBER_QUESTIONS))
    return begins or not NUMBERS.isdisjoint(words)


def negation_rows(task: Task) -> IntArray:
    """Indices of the rows of which exactly one text holds a negation word, ``(m,)``."""
    texts = zip(task.sentences1, task.sentences2, strict=True)
    return np.flatnonzero([has_negation(one) != has_negation(two) for one, two in texts])


def number_rows(task: Task) -> IntArray:
    """Indices of the rows whose condition asks for a number, ``(m,)``."""
    return np.flatnonzero([asks_for_number(condition) for condition in task.conditions or ()])


SLICES = {"negation": negation_rows, "numbers": number_rows}
"""The slices, by name."""


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
    listed = (*path.glob("*.txt.gz"), *path.glob("*.txt"))
    named = {file.name.removesuffix(".gz"): file for file in listed}  # of both the plain one
    found = [path] if path.is_file() else [named[name] for name in sorted(named)]
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
