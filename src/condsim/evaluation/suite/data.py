"""The data sets of the suite, found in a folder by their released file names."""

from __future__ import annotations

import fnmatch
import logging
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from condsim import __version__
from condsim.errors import InputError, unknown_name
from condsim.files import sha256_of
from condsim.kept import digest
from condsim.tasks import (
    STS_COUNTS,
    STS_YEARS,
    Triplets,
    draw_section_triplets,
    join_tasks,
    load_afs_topics,
    load_sick,
    load_sts_year,
    load_task,
    load_triplets,
    subset_of,
    write_triplets,
)
from condsim.types import Task

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
        self._files = {folder: sorted(files) for folder, files in _listed(root)}

    def file(self, *names: str, of: str | None = None) -> Path | None:
        """The first file of one of these names, below a folder whose name has ``of`` in it."""
        for name in names:
            for folder, files in self._files.items():
                if of is not None and of not in self._place(folder):
                    continue
                for found in files:
                    if found.casefold() == name.casefold():
                        return folder / found
        return None

    def folder_of(self, pattern: str) -> Path | None:
        """The first folder with a file that matches."""
        for folder, files in self._files.items():
            if fnmatch.filter(files, pattern):
                return folder
        return None

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


Suite = Literal["sts", "sts-b", "csts", "afs", "wiki-sections", "all"]
"""``sts``: the seven columns of SSBC Table 2. ``all``: everything that is in the folder."""

_LOGGER = logging.getLogger("condsim")


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
        averaged: Whether SSBC Table 2 counts it in its mean.
        published: Whether it has all the rows that published numbers are of.
        names: Names of the subsets.
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

    @property
    def revision(self) -> str:
        """Version of the data."""
        return self.task.revision

    def bounds(self) -> list[slice]:
        """Where each subset is among the rows."""
        ends = np.cumsum(self.subsets or (len(self.task),)).tolist()
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def load_suite(
    folder: Path | str,
    suite: Suite = "sts",
    *,
    only: Sequence[str] | None = None,
    triplets_cache: Path | None = None,
) -> tuple[SuiteTask, ...]:
    """Finds and loads the data sets of a suite.

    Files are found by their names, in the folder itself or up to two levels below it. Where two
    folders have the same set, the shallower one wins, then the one whose name comes first.

    Args:
        folder: The folder.
        suite: Which data sets.
        only: Keys of the data sets to load; all of the suite by default.
        triplets_cache: Folder that keeps triplets drawn from running text; None draws them anew
            each time.

    Returns:
        The data sets in the order of the tables. Missing ones are skipped with a warning (logger
        ``condsim``); for ``all``, without.

    Raises:
        InputError: If there is no such folder, it has none of the data sets, a key is unknown, a
            subset is missing, or a file breaks a rule of its format.
        MissingExtraError: If triplets have to be drawn and sentencex is not installed.
    """
    if suite not in get_args(Suite):
        raise unknown_name("suite", suite, get_args(Suite))
    there = DataFolder(Path(folder))
    wanted = _SUITES[suite]
    if only is not None:
        for key in only:
            if key not in wanted:
                raise unknown_name(f"data set of the suite {suite!r}", key, wanted)
        wanted = tuple(key for key in wanted if key in only)
    found: list[SuiteTask] = []
    missing = []
    for key in wanted:
        loaded = _LOADERS[key](there, triplets_cache)
        found += loaded
        if not loaded:
            missing.append(key)
    if not found:
        raise InputError(
            f"{folder}: has no data of the suite {suite!r}. Looked for, there and two levels "
            f"below: {'; '.join(_LOOKED_FOR[_family(key)] for key in _families(wanted))}."
        )
    if missing and suite != "all":
        names = "; ".join(_LOOKED_FOR[_family(key)] for key in _families(missing))
        _LOGGER.warning("%s: without %s (%s)", folder, ", ".join(missing), names)
    return tuple(found)


_Loader = Callable[[DataFolder, Path | None], list[SuiteTask]]


def _sts(year: int) -> _Loader:
    def load(there: DataFolder, _: Path | None) -> list[SuiteTask]:
        folder = there.sts_year(year)
        if folder is None:
            return []
        name = f"STS{year % 100}"
        return [_joined(name, load_sts_year(folder, year=year), averaged=True)]

    return load


def _joined(name: str, subsets: Iterable[Task], *, averaged: bool = False) -> SuiteTask:
    parts = [task.labelled() for task in subsets]
    return SuiteTask(
        name.lower(),
        name,
        join_tasks(parts, name=name),
        subsets=tuple(map(len, parts)),
        names=tuple(part.name for part in parts),
        averaged=averaged,
    )


def _stsb(split: Literal["dev", "test"]) -> _Loader:
    def load(there: DataFolder, _: Path | None) -> list[SuiteTask]:
        path = there.file(f"sts-{split}.csv", f"stsb-{split}.tsv", f"stsbenchmark-{split}.tsv")
        if path is None and split == "dev":
            path = there.file("dev.tsv", of="sts-b")  # GLUE; its test rows have no scores
        if path is None:
            return []
        test = split == "test"
        task = load_task(path, name="STS-B" if test else "STS-B dev", require_labels=True)
        key = "sts-b" if test else "sts-b-dev"
        return [SuiteTask(key, task.name, task.labelled(), averaged=test)]

    return load


def _sick(there: DataFolder, _: Path | None) -> list[SuiteTask]:
    if path := there.file("SICK_test_annotated.txt", "sick_test.tsv", "sick_test.txt"):
        task = load_sick(path, name="SICK-R")
    elif path := there.file("SICK.txt", "sick.tsv"):
        task = load_sick(path, name="SICK-R", split="test")
    else:
        return []
    return [SuiteTask("sick-r", task.name, task, averaged=True)]


def _csts(there: DataFolder, _: Path | None) -> list[SuiteTask]:
    path = there.file("csts_validation.csv") or there.file("dev.csv", "validation.csv", of="csts")
    if path is None:
        return []
    train = there.file("csts_train.csv") or there.file("train.csv", of="csts")
    task = load_task(path, name="C-STS", require_labels=True)
    learnt = None if train is None else load_task(train, require_labels=True)
    return [SuiteTask("csts", task.name, task.labelled(), train=learnt)]


def _afs(there: DataFolder, _: Path | None) -> list[SuiteTask]:
    folder = there.folder_of("ArgPairs_*.csv")
    if folder is None:
        return []
    return [_joined("AFS", load_afs_topics(folder))]


def _cxc(there: DataFolder, _: Path | None) -> list[SuiteTask]:
    path = there.file("cxc_sts_test.tsv")
    if path is None:
        return []
    task = load_task(path, name="CxC", require_labels=True)
    return [SuiteTask("cxc", task.name, task.labelled())]


def _sections(there: DataFolder, cache: Path | None) -> list[SuiteTask]:
    if path := there.file("test.csv", of="section") or there.file("test.csv", of="triplet"):
        return [_triplets(load_triplets(path), title="Wiki sections", published=True)]
    if path := there.file("sections-dev.tsv"):
        return [_triplets(load_triplets(path), title="Sections", published=False)]
    if text := there.file("openstax.txt.gz", "sections.txt.gz", "sections.txt"):
        return [_triplets(_drawn(text, cache), title="Sections", published=False)]
    return []


def _triplets(triplets: Triplets, *, title: str, published: bool) -> SuiteTask:
    task = triplets.pairs()
    return SuiteTask("wiki-sections", title, task, triplets=True, published=published)


def _drawn(text: Path, cache: Path | None) -> Triplets:
    """The dev split of triplets drawn from running text, kept if there is a folder for it."""
    if cache is None:
        return draw_section_triplets(text).dev
    revision = sha256_of(text)
    key = digest({"format": 1, "condsim": __version__, "triplets": revision})
    path = cache / f"triplets-{key}.tsv"
    if not path.is_file():
        drawn = draw_section_triplets(text).dev
        try:
            cache.mkdir(parents=True, exist_ok=True)
            write_triplets(drawn, path)
        except (OSError, InputError) as error:
            _LOGGER.warning("%s: nothing can be kept there (%s)", cache, error)
            return drawn
    read = load_triplets(path, name=text.name.partition(".")[0])
    return replace(read, revision=revision[:12])


_LOADERS: Mapping[str, _Loader] = {
    **{f"sts{year % 100}": _sts(year) for year in STS_YEARS},
    "sts-b-dev": _stsb("dev"),
    "sts-b": _stsb("test"),
    "sick-r": _sick,
    "cxc": _cxc,
    "afs": _afs,
    "wiki-sections": _sections,
    "csts": _csts,
}
_YEARS = tuple(f"sts{year % 100}" for year in STS_YEARS)
_SUITES: Mapping[str, tuple[str, ...]] = {
    "sts": (*_YEARS, "sts-b", "sick-r"),
    "sts-b": ("sts-b-dev", "sts-b"),
    "csts": ("csts",),
    "afs": ("afs",),
    "wiki-sections": ("wiki-sections",),
    "all": (*_YEARS, "sts-b", "sick-r", "cxc", "afs", "wiki-sections", "csts"),
}
_LOOKED_FOR: Mapping[str, str] = {
    "sts": "STS.input.<subset>.txt with STS.gs.<subset>.txt, in a folder named after the year, or "
    "sts12.MSRpar.test.tsv and so on",
    "sts-b": "sts-dev.csv (or dev.tsv of GLUE in a folder named STS-B) and sts-test.csv",
    "sick-r": "SICK_test_annotated.txt, sick_test.tsv or SICK.txt",
    "cxc": "cxc_sts_test.tsv",
    "afs": "ArgPairs_DP.csv, ArgPairs_GC.csv and ArgPairs_GM.csv",
    "wiki-sections": "test.csv in a folder with 'section' or 'triplet' in its name, "
    "sections-dev.tsv, or text with headings as openstax.txt.gz or sections.txt",
    "csts": "csts_validation.csv, or dev.csv in a folder with 'csts' in its name",
}


def _family(key: str) -> str:
    """The data set whose files are looked for under one description."""
    if key in _YEARS:
        return "sts"
    return "sts-b" if key == "sts-b-dev" else key


def _families(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(_family(key) for key in keys))
