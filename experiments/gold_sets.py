"""The test sets that similarity from contexts is measured on: STS12 to STS16, STS-B, SICK-R."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.tasks import join_tasks, load_sts_year, load_task
from condsim.types import Task
from experiments.naming import digest

GOLD_SETS = {
    **{f"sts{year}": f"STS{year}" for year in range(12, 17)},
    "sts-b": "STS-B",
    "sick-r": "SICK-R",
}
"""Names in tables by key, in the order of Table 2 of Sun et al. (2022)."""

_SEED = 0


@dataclass(frozen=True)
class ContextsOptions:
    """What a person may choose for experiments of similarity from contexts.

    Attributes:
        recipe: Recipe that every row starts from; None for ``openstax`` of condsim.
        sts: Folder with the files of STS12 to STS16 (`condsim.tasks.sts.load_sts_year`).
        sick: Folder with ``sick_test.tsv``.
        only: Keys of the sets to measure on; None for those of the experiment.
        rows: Rows of each set at most, drawn with a fixed seed; None for all.
    """

    recipe: Path | None = None
    sts: Path = Path()
    sick: Path = Path()
    only: tuple[str, ...] | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class GoldSet:
    """Pairs with gold similarities.

    Attributes:
        key: Key in `GOLD_SETS`.
        task: The labelled rows that are measured on, in the order of the file. The subsets of a
            year are one set, as the paper's numbers are taken (READING.md: aggregation ``all``).
        source: Where they come from, for people.
        rows: How many rows were drawn; None if these are all.
    """

    key: str
    task: Task
    source: str
    rows: int | None

    @property
    def label(self) -> str:
        """Name in tables."""
        return GOLD_SETS[self.key]

    @property
    def code(self) -> str:
        """Stands for the rows, readable at its start; such as ``sts-b-1a2b3c4d``."""
        return f"{self.key}-{digest({'revision': self.task.revision, 'rows': self.rows})}"


def load_gold_set(key: str, *, stsb: Path, options: ContextsOptions) -> GoldSet:
    """Reads a test set.

    Args:
        key: Key in `GOLD_SETS`.
        stsb: Folder with ``sts-test.csv``.
        options: The other folders, and how many rows to take.

    Returns:
        The set.

    Raises:
        InputError: If its files are not there or break a rule.
    """
    if key.startswith("sts1"):
        year = 2000 + int(key.removeprefix("sts"))
        if not options.sts.is_dir():
            raise InputError(f"There is no folder {options.sts}: --sts must name one with {key}.")
        subsets = load_sts_year(options.sts, year=year)
        task = join_tasks([subset.labelled() for subset in subsets], name=GOLD_SETS[key])
        source = ", ".join(subset.name for subset in subsets)
    else:
        flag, file = ("--stsb", stsb / "sts-test.csv")
        if key == "sick-r":
            flag, file = ("--sick", options.sick / "sick_test.tsv")
        if not file.is_file():
            raise InputError(f"There is no {file}: {flag} must name a folder that has it.")
        task = load_task(file, name=GOLD_SETS[key], require_labels=True).labelled()
        source = file.name
    rows = options.rows
    if rows is None or rows >= len(task):
        return GoldSet(key, task, source, None)
    drawn = np.random.default_rng(_SEED).choice(len(task), rows, replace=False)
    return GoldSet(key, task.take(np.sort(drawn).astype(np.int64)), source, rows)
