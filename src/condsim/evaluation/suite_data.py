"""The data sets of a suite: one for each file, set of criteria or domain.

In the suites ``criteria`` and ``written`` a condition alone says nothing about the label, so models
are measured by Spearman and by how often they rank two conditions of one text pair as the labels
do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from condsim.data.files import iter_rows
from condsim.data.load import load_task
from condsim.data.tasks import make_task
from condsim.data.written import is_written, load_written
from condsim.errors import InputError, unknown_name
from condsim.evaluation.natural import load_natural_sets
from condsim.evaluation.suite import SuiteSet
from condsim.io import sha256_of
from condsim.types import Task

GROUPS = ("trained on", "left out of training", "evaluation only")
"""Groups of the sets of criteria, in the order of the tables."""

CRITERIA_FILE = "dev_rows.csv"

_COLUMNS = ("set", "sentence1", "sentence2", "condition", "label")
_LABEL_RANGE = (1.0, 5.0)


def load_suite(path: Path | str, suite: str) -> tuple[SuiteSet, ...]:
    """Load the data sets of a suite.

    Args:
        path: The folder of the data, or the file itself.
        suite: A name in `SUITES`.

    Returns:
        The data sets in the order of the tables.

    Raises:
        InputError: If the suite is unknown, there is no such folder, it has no data of the suite,
            or a file breaks a rule of its format.
    """
    if suite not in SUITES:
        raise unknown_name("suite", suite, SUITES)
    return SUITES[suite](Path(path))


def load_files(
    paths: Sequence[Path], load: Callable[[Path], Task] | None = None
) -> tuple[SuiteSet, ...]:
    """Load a data set from each file, by `condsim.data.load_task` or another function."""
    load = load or partial(load_task, require_labels=True)
    sets: dict[str, SuiteSet] = {}
    for path in paths:
        task = load(path).labelled()
        # Two files may have one name.
        key = task.name if task.name not in sets else str(path)
        sets[key] = SuiteSet(key, key, task, averaged=len(paths) > 1)
    return tuple(sets.values())


def load_criteria_sets(path: Path) -> tuple[SuiteSet, ...]:
    """Load rows drawn from labelled texts, a data set for each name in the column ``set``."""
    files = [path] if path.is_file() else []
    for pattern in (CRITERIA_FILE, f"*/{CRITERIA_FILE}", f"*/*/{CRITERIA_FILE}"):
        files += sorted(path.glob(pattern))
    if not files:
        raise InputError(
            f"{path}: has no data of the suite 'criteria': no {CRITERIA_FILE}, there or two levels "
            "below."
        )
    rows: dict[str, list[tuple[str, str, str | None, float]]] = {}
    evaluation_only: set[str] = set()
    for row in iter_rows(files[0], columns=_COLUMNS, optional=("use",)):
        name = row.text("set")
        texts = (row.text("sentence1"), row.text("sentence2"), row.text("condition"))
        rows.setdefault(name, []).append((*texts, row.score("label", label_range=_LABEL_RANGE)))
        if row.cells["use"] == GROUPS[2]:
            evaluation_only.add(name)
    revision = sha256_of(files[0])[:12]
    sets = []
    for name, set_rows in sorted(rows.items()):
        task = make_task(files[0], set_rows, label_range=_LABEL_RANGE, name=name, revision=revision)
        group = GROUPS[2] if name in evaluation_only else GROUPS[1]
        sets.append(SuiteSet(name, name, task, group=group, averaged=True))
    return _by_group(sets)


def mark_trained(sets: Sequence[SuiteSet], names: Sequence[str]) -> tuple[SuiteSet, ...]:
    """Move sets of criteria into the group of those that a model was trained on.

    Args:
        sets: The result of `load_suite`.
        names: Keys of the data sets that the models were trained on.

    Returns:
        All data sets, those trained on first.
    """
    keys = [suite_set.key for suite_set in sets]
    for name in names:
        if name not in keys:
            raise unknown_name("set of the suite 'criteria'", name, keys)
    return _by_group(
        replace(suite_set, group=GROUPS[0]) if suite_set.key in names else suite_set
        for suite_set in sets
    )


def _by_group(sets: Iterable[SuiteSet]) -> tuple[SuiteSet, ...]:
    return tuple(sorted(sets, key=lambda suite_set: GROUPS.index(str(suite_set.group))))


def load_written_sets(path: Path) -> tuple[SuiteSet, ...]:
    """Load written pairs, a data set for each domain, by file."""
    files = written_files(path)
    sets: list[SuiteSet] = []
    for file in files:
        task = load_written(file)
        prefix = "" if len(files) == 1 else f"{task.name}/"
        domains = np.array(task.domains)
        for domain in sorted(set(task.domains)):
            rows = task.take(np.flatnonzero(domains == domain))
            sets.append(SuiteSet(f"{prefix}{domain}", domain, rows, group=task.name, averaged=True))
    return tuple(sets)


def written_files(path: Path) -> list[Path]:
    """List the files of written pairs in a folder, or the file itself."""
    files = [path]
    if not path.is_file():
        # Of a file that is also there gzipped, the plain one is read.
        listed = chain(path.glob("*.txt.gz"), path.glob("*.txt"))
        by_name = {file.name.removesuffix(".gz"): file for file in listed}
        files = [by_name[name] for name in sorted(by_name)]
    files = [file for file in files if is_written(file)]
    if not files:
        raise InputError(
            f"{path}: has no data of the suite 'written': expected a .txt file in the written form "
            "'domain ||| text 1 ||| text 2 ||| condition = label', or a folder of them."
        )
    return files


SUITES: dict[str, Callable[[Path], tuple[SuiteSet, ...]]] = {
    "criteria": load_criteria_sets,
    "written": load_written_sets,
    "natural": load_natural_sets,
}
"""Loaders of the suites by name; each takes the folder of the data, or the file itself."""
