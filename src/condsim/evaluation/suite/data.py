"""The data sets of the suite, found in a folder by their released file names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from condsim import __version__
from condsim.cache import digest
from condsim.data.afs import load_afs_topics
from condsim.data.load import load_task
from condsim.data.sick import load_sick
from condsim.data.sts import STS_YEARS, join_tasks, load_sts_year
from condsim.data.triplets import Triplets, draw_section_triplets, load_triplets, write_triplets
from condsim.errors import InputError, unknown_name
from condsim.evaluation.suite.sets import (
    DataFolder,
    SuiteTask,
    load_criteria_rows,
    load_written_domains,
)
from condsim.io import sha256_of
from condsim.types import Task

Suite = Literal["sts", "sts-b", "csts", "afs", "wiki-sections", "all", "criteria", "written"]
"""``sts``: the seven columns of SSBC Table 2. ``all``: everything that is in the folder, but not
``criteria`` (rows of many domains, a data set each) and ``written`` (pairs by domain)."""

BY_SET: tuple[Suite, ...] = ("criteria", "written")
"""Suites whose data sets have groups and are measured by Spearman and pair accuracy."""

_LOGGER = logging.getLogger("condsim")


def load_suite(
    folder: Path | str,
    suite: Suite = "sts",
    *,
    triplets_cache: Path | None = None,
) -> tuple[SuiteTask, ...]:
    """Finds and loads the data sets of a suite.

    Files are found by their names, in the folder itself or up to two levels below it. Where two
    folders have the same set, the shallower one wins, then the one whose name comes first.

    Args:
        folder: The folder; for ``criteria`` and ``written`` also the file itself.
        triplets_cache: Folder that keeps triplets drawn from running text; None draws them anew
            each time.

    Returns:
        The data sets in the order of the tables. Missing ones are skipped with a warning (logger
        ``condsim``); for ``all``, without.

    Raises:
        InputError: If there is no such folder, it has none of the data sets, a subset is missing,
            or a file breaks a rule of its format.
    """
    if suite not in get_args(Suite):
        raise unknown_name("suite", suite, get_args(Suite))
    if suite in BY_SET:
        path = Path(folder)
        return load_criteria_rows(path) if suite == "criteria" else load_written_domains(path)
    there = DataFolder(Path(folder))
    loaded = {key: _LOADERS[key](there, triplets_cache) for key in _SUITES[suite]}
    found = tuple(task for task in loaded.values() if task is not None)
    missing = [key for key, task in loaded.items() if task is None]
    if not found:
        raise InputError(
            f"{folder}: has no data of the suite {suite!r}. Looked for, there and two levels "
            f"below: {_looked_for(missing)}."
        )
    if missing and suite != "all":
        _LOGGER.warning("%s: without %s (%s)", folder, ", ".join(missing), _looked_for(missing))
    return found


_Loader = Callable[[DataFolder, Path | None], SuiteTask | None]


def _sts(there: DataFolder, _: Path | None, *, year: int) -> SuiteTask | None:
    folder = there.sts_year(year)
    if folder is None:
        return None
    return _joined(f"STS{year % 100}", load_sts_year(folder, year=year), averaged=True)


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


def _labelled(
    key: str, title: str, path: Path | None, *, train: Path | None = None, averaged: bool = False
) -> SuiteTask | None:
    if path is None:
        return None
    task = load_task(path, name=title, require_labels=True)
    learnt = None if train is None else load_task(train, require_labels=True)
    return SuiteTask(key, title, task.labelled(), train=learnt, averaged=averaged)


def _stsb(there: DataFolder, _: Path | None) -> SuiteTask | None:
    path = there.file("sts-test.csv", "stsb-test.tsv", "stsbenchmark-test.tsv")
    return _labelled("sts-b", "STS-B", path, averaged=True)


def _stsb_dev(there: DataFolder, _: Path | None) -> SuiteTask | None:
    path = there.file("sts-dev.csv", "stsb-dev.tsv", "stsbenchmark-dev.tsv")
    path = path or there.file("dev.tsv", of="sts-b")  # GLUE; its test rows have no scores
    return _labelled("sts-b-dev", "STS-B dev", path)


def _sick(there: DataFolder, _: Path | None) -> SuiteTask | None:
    if path := there.file("SICK_test_annotated.txt", "sick_test.tsv", "sick_test.txt"):
        task = load_sick(path, name="SICK-R")
    elif path := there.file("SICK.txt", "sick.tsv"):
        task = load_sick(path, name="SICK-R", split="test")
    else:
        return None
    return SuiteTask("sick-r", task.name, task, averaged=True)


def _csts(there: DataFolder, _: Path | None) -> SuiteTask | None:
    path = there.file("csts_validation.csv") or there.file("dev.csv", "validation.csv", of="csts")
    train = there.file("csts_train.csv") or there.file("train.csv", of="csts")
    return _labelled("csts", "C-STS", path, train=train)


def _afs(there: DataFolder, _: Path | None) -> SuiteTask | None:
    folder = there.folder_of("ArgPairs_*.csv")
    return None if folder is None else _joined("AFS", load_afs_topics(folder))


def _sections(there: DataFolder, cache: Path | None) -> SuiteTask | None:
    if path := there.file("test.csv", of="section") or there.file("test.csv", of="triplet"):
        return _triplets(load_triplets(path), title="Wiki sections", published=True)
    if path := there.file("sections-dev.tsv"):
        return _triplets(load_triplets(path), title="Sections", published=False)
    if text := there.file("openstax.txt.gz", "sections.txt.gz", "sections.txt"):
        return _triplets(_drawn(text, cache), title="Sections", published=False)
    return None


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
    **{f"sts{year % 100}": partial(_sts, year=year) for year in STS_YEARS},
    "sts-b-dev": _stsb_dev,
    "sts-b": _stsb,
    "sick-r": _sick,
    "cxc": lambda there, _: _labelled("cxc", "CxC", there.file("cxc_sts_test.tsv")),
    "afs": _afs,
    "wiki-sections": _sections,
    "csts": _csts,
}
_YEARS = tuple(f"sts{year % 100}" for year in STS_YEARS)
_SUITES: Mapping[str, tuple[str, ...]] = {
    "sts": (*_YEARS, "sts-b", "sick-r"),
    "sts-b": ("sts-b-dev", "sts-b"),
    **{key: (key,) for key in ("csts", "afs", "wiki-sections")},
    "all": tuple(key for key in _LOADERS if key != "sts-b-dev"),
}
_LOOKED_FOR: Mapping[str, str] = {
    **dict.fromkeys(
        _YEARS,
        "STS.input.<subset>.txt with STS.gs.<subset>.txt, in a folder named after the year, or "
        "sts12.MSRpar.test.tsv and so on",
    ),
    **dict.fromkeys(
        ("sts-b-dev", "sts-b"),
        "sts-dev.csv (or dev.tsv of GLUE in a folder named STS-B) and sts-test.csv",
    ),
    "sick-r": "SICK_test_annotated.txt, sick_test.tsv or SICK.txt",
    "cxc": "cxc_sts_test.tsv",
    "afs": "ArgPairs_DP.csv, ArgPairs_GC.csv and ArgPairs_GM.csv",
    "wiki-sections": "test.csv in a folder with 'section' or 'triplet' in its name, "
    "sections-dev.tsv, or text with headings as openstax.txt.gz or sections.txt",
    "csts": "csts_validation.csv, or dev.csv in a folder with 'csts' in its name",
}


def _looked_for(keys: Iterable[str]) -> str:
    """The files that were looked for, those of several data sets once."""
    return "; ".join(dict.fromkeys(_LOOKED_FOR[key] for key in keys))
