"""The folder that a suite is found in, and what a data set found there becomes."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.tasks import STS_COUNTS, subset_of
from condsim.types import Task


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
