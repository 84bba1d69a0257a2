"""A year of STS 2012-2016: its subsets in order, each a task of its own.

How a year's correlation is made of them is `condsim.evaluation.aggregation`.

STS-B was put together from these sets: 4,745 of the 5,749 rows of its train file are also among the
12,544 test rows here. What was trained on STS-B is not to be measured on STS 2012-2016.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.tasks.published import compare_count
from condsim.tasks.sts import STS_COUNTS, load_sts, subset_of
from condsim.types import Task

__all__ = ["STS_YEARS", "join_tasks", "load_sts_year"]

STS_YEARS = tuple(STS_COUNTS)
"""The years, from 2012 to 2016."""

_YEAR_IN_NAME = re.compile(r"(?<!\d)(?:20)?(1[2-6])(?!\d)")


def load_sts_year(folder: Path | str, *, year: int | None = None) -> tuple[Task, ...]:
    """Loads the subsets of a year.

    Args:
        folder: A folder with the files of each subset, in either form of
            `condsim.tasks.sts.load_sts`. Other files in it, such as all subsets in one, are
            ignored.
        year: Which year, from 2012 to 2016. By default it is told from the names of the files or
            of the folder, or from the subsets found.

    Returns:
        The subsets in the order of SentEval, named such as ``STS12.MSRpar``. Other numbers of rows
        than published are warned of (logger ``condsim``).

    Raises:
        InputError: If there is no such folder, the year cannot be told, a subset is missing, or a
            file breaks a rule of its format.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Give the folder with the subsets of a year.")
    found = _subsets(folder)
    if year is None:
        year = _year_of(folder, found)
    elif year not in STS_COUNTS:
        raise InputError(f"STS is of the years {STS_YEARS[0]} to {STS_YEARS[-1]}. Got {year}.")
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
        if subset_of(path) == (None, subset):  # the others were compared when loaded
            compare_count(str(path), found=len(task), published=published)
        tasks.append(task)
    return tuple(tasks)


def join_tasks(tasks: Sequence[Task], *, name: str) -> Task:
    """Puts the rows of tasks one after the other, such as the subsets of a year.

    Args:
        tasks: One or more, all on one scale, all with conditions or all without.
        name: Name of the result.

    Returns:
        Their rows; the revision is made of theirs.

    Raises:
        InputError: If there are none, or they differ in scale or in having conditions.
    """
    if not tasks:
        raise InputError("There are no tasks to join; give at least one.")
    first = tasks[0]
    for task in tasks[1:]:
        if task.label_range != first.label_range:
            raise InputError(
                f"Tasks can be joined only if their labels are on one scale. {first.name} has "
                f"{first.label_range} and {task.name} has {task.label_range}."
            )
        if (task.conditions is None) != (first.conditions is None):
            raise InputError(
                "Tasks can be joined only if all have conditions or none has. "
                f"{first.name} and {task.name} differ."
            )
    conditions = tuple(text for task in tasks for text in task.conditions or ())
    return Task(
        name=name,
        revision=hashlib.sha256(" ".join(t.revision for t in tasks).encode()).hexdigest()[:12],
        sentences1=tuple(text for task in tasks for text in task.sentences1),
        sentences2=tuple(text for task in tasks for text in task.sentences2),
        conditions=None if first.conditions is None else conditions,
        labels=np.concatenate([task.labels for task in tasks]),
        label_range=first.label_range,
    )


def _subsets(folder: Path) -> dict[tuple[int | None, str], Path]:
    """The files of the folder by year, if their name tells it, and subset."""
    named = ((subset_of(path), path) for path in sorted(folder.iterdir()) if path.is_file())
    return {subset: path for subset, path in named if subset is not None}


def _year_of(folder: Path, found: dict[tuple[int | None, str], Path]) -> int:
    """The year that the names of the files or of the folder tell, or else the subsets."""
    years = {year for year, _ in found if year is not None}
    if not years and (named := _YEAR_IN_NAME.findall(folder.resolve().name)):
        years = {2000 + int(year) for year in named}
    if not years:
        subsets = {subset for _, subset in found}
        years = {year for year, counts in STS_COUNTS.items() if set(counts) <= subsets}
    if len(years) == 1:
        return years.pop()
    told = (
        f"it has those of {', '.join(map(str, sorted(years)))}" if years else "it has no whole year"
    )
    raise InputError(
        f"{folder}: the year of STS cannot be told from it, {told}. Say which by 'year', from "
        f"{STS_YEARS[0]} to {STS_YEARS[-1]}."
    )
