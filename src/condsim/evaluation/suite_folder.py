"""Looks for released files by name, in a folder and two levels below it."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from condsim.errors import InputError
from condsim.tasks.sts import STS_COUNTS, subset_of

__all__ = ["DataFolder"]

_DEPTH = 2
_YEAR_IN_NAME = re.compile(r"(?:sts.{0,3}?(?:20)?|(?<!\d)20)(1[2-6])(?!\d)", re.IGNORECASE)


class DataFolder:
    """The files of a folder, the shallow ones first and then by name.

    Attributes:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        """Lists the folder.

        Args:
            root: The folder; hidden ones in it are left out.

        Raises:
            InputError: If there is no such folder.
        """
        if not root.is_dir():
            raise InputError(
                f"{root}: no such folder. A suite needs the folder that has the data sets in it, "
                "each in a folder of its own."
            )
        self.root = root
        self._files = {
            folder: sorted(files) for folder, files in _listed(root)
        }  # in the order of the search

    def file(self, *names: str, of: str | None = None) -> Path | None:
        """Finds a file.

        Args:
            *names: What it may be called, in any case; the first name goes first.
            of: A word that the path of its folder must have, seen from the root; the root's own
                name counts.

        Returns:
            The first such file; None if there is none.
        """
        for name in names:
            for folder, files in self._files.items():
                if of is not None and of not in self._place(folder):
                    continue
                for found in files:
                    if found.casefold() == name.casefold():
                        return folder / found
        return None

    def folder_of(self, pattern: str) -> Path | None:
        """Finds a folder.

        Args:
            pattern: What a file in it is called, such as ``ArgPairs_*.csv``.

        Returns:
            The first folder with such a file; None if there is none.
        """
        for folder, files in self._files.items():
            if fnmatch.filter(files, pattern):
                return folder
        return None

    def sts_year(self, year: int) -> Path | None:
        """Finds the folder with the subsets of a year of STS.

        Args:
            year: The year, from 2012 to 2016.

        Returns:
            The first folder with a file of that year by its name, or a file of SemEval in a folder
            named after the year, or files of all its subsets; None if there is none. That nothing
            is missing is not said.
        """
        for folder, files in self._files.items():
            found = [named for file in files if (named := subset_of(Path(file))) is not None]
            if any(of == year for of, _ in found):
                return folder
            yearless = {subset for of, subset in found if of is None}
            told = _YEAR_IN_NAME.findall(folder.name)
            if yearless and told:
                if f"{year % 100}" in told:
                    return folder
            elif yearless >= set(STS_COUNTS[year]):
                return folder
        return None

    def _place(self, folder: Path) -> str:
        """The names of the root and of the folders below it that lead to a folder."""
        inner = folder.relative_to(self.root).as_posix()
        return f"{self.root.resolve().name}/{inner}".casefold()


def _listed(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with the names of their files, breadth first."""
    queue = deque([(root, 0)])
    while queue:
        folder, depth = queue.popleft()
        files, folders = [], []
        try:
            for entry in os.scandir(folder):
                if entry.is_dir():
                    folders.append(entry.name)
                else:
                    files.append(entry.name)
        except OSError as error:
            raise InputError(f"{folder}: cannot be listed ({error.strerror}).") from error
        yield folder, files
        if depth < _DEPTH:
            queue += [(folder / name, depth + 1) for name in sorted(folders) if name[0] != "."]
