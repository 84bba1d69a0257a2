"""Options of the experiments, and the data sets that they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.load import load_task
from condsim.data.tasks import join_tasks
from condsim.errors import InputError
from condsim.paths import sha256_of
from condsim.types import Task
from condsim_llm.backend import Scoring
from papers.columns import DEFAULT_BACKBONE, TEST_SETS, Column
from papers.data.sts import load_sts_year
from papers.naming import digest

_FILES = {
    "c-sts": ("csts-reannotated/train.csv", "csts-reannotated/dev.csv"),
    "sts-b": ("sts-b/sts-train.csv", "sts-b/sts-dev.csv"),
}
_TEST_FILES = {"sts-b": "sts-b/sts-test.csv", "sick-r": "sick-r/sick_test.tsv"}
_STS = "sts12-16"
_SEED = 0


@dataclass(frozen=True)
class PromptOptions:
    """Language models to prompt, and the budget of all runs.

    Without the address of an OpenAI-compatible server, they run on this machine, but for those that
    only OpenAI has. None means unlimited.
    """

    models: tuple[Column, ...] = ()
    base_url: str | None = None
    # Each model after the first has separate columns.
    scoring: tuple[Scoring, ...] = ("text",)
    # Maximum number of rows of the dev file, drawn with a fixed seed; None for all.
    rows: int | None = None
    max_requests: int | None = None
    # Maximum number of tokens of prompts and answers.
    max_tokens: int | None = None


@dataclass(frozen=True)
class ContextsOptions:
    """Options of experiments on similarity from contexts."""

    # Recipe that every row starts from; None for recipes/contexts/openstax.yaml.
    recipe: Path | None = None
    # Keys of test sets; None for all of the experiment.
    only: tuple[str, ...] | None = None
    # Maximum number of rows of each test set, drawn with a fixed seed; None for all.
    rows: int | None = None


@dataclass(frozen=True)
class Options:
    """Options of the experiments."""

    # Folder of the data sets; not needed by an experiment that reads none.
    data: Path | None = None
    # Folder of all experiments.
    runs: Path = Path("runs/reproduce")
    backbones: tuple[Column, ...] = (DEFAULT_BACKBONE,)
    # Recipe keys to change in every run, such as "epochs=2".
    overrides: tuple[str, ...] = ()
    # Number of seeds of every row; None for the experiment's.
    seeds: int | None = None
    # Whether to run the rows that are left out by default.
    full: bool = False
    prompts: PromptOptions = PromptOptions()
    contexts: ContextsOptions = ContextsOptions()


@dataclass(frozen=True)
class DataFiles:
    """Training and dev file of a task; a revision is 12 hex digits of a file's SHA-256."""

    train: Path
    dev: Path
    train_revision: str
    dev_revision: str
    # Number of rows of the dev file that are measured on; None for all.
    rows: int | None = None

    def dev_task(self) -> Task:
        """Read the labeled rows of the dev file, or those drawn; more rows hold all of fewer."""
        task = load_task(self.dev, require_labels=True).labeled()
        if self.rows is None:
            return task
        order = np.random.default_rng(_SEED).permutation(len(task))
        return task.take(np.sort(order[: self.rows]).astype(np.int64))


def data_path(options: Options, relative: str) -> Path:
    """Find a file or folder below the folder of the data sets."""
    if options.data is None:
        raise InputError(f"Name the folder of the data sets with --data; it must hold {relative}.")
    path = options.data / relative
    if not path.exists():
        raise InputError(f"There is no {path}: --data must name a folder that holds {relative}.")
    return path


def data_files(task: str, options: Options) -> DataFiles:
    """Find the files of ``c-sts`` or ``sts-b``."""
    train, dev = (data_path(options, name) for name in _FILES[task])
    revisions = sha256_of(train)[:12], sha256_of(dev)[:12]
    return DataFiles(train, dev, *revisions, options.prompts.rows)


@dataclass(frozen=True, eq=False)
class GoldSet:
    """Labeled rows of a test set; subsets of a year are one set, as with "all" of SimCSE."""

    key: str
    task: Task
    source: str
    rows: int | None

    @property
    def label(self) -> str:
        """Name in tables."""
        return TEST_SETS[self.key].label

    @property
    def code(self) -> str:
        """Stands for the rows, readable at its start; such as ``sts-b-1a2b3c4d``."""
        return f"{self.key}-{digest({'revision': self.task.revision, 'rows': self.rows})}"


def load_gold_set(key: str, options: Options) -> GoldSet:
    """Read a test set, or the rows of it that are to be measured."""
    name = TEST_SETS[key].label
    if key in _TEST_FILES:
        file = data_path(options, _TEST_FILES[key])
        task = load_task(file, name=name, require_labels=True).labeled()
        source = file.name
    else:
        year = 2000 + int(key.removeprefix("sts"))
        subsets = load_sts_year(data_path(options, _STS), year=year)
        task = join_tasks([subset.labeled() for subset in subsets], name=name)
        source = ", ".join(subset.name for subset in subsets)
    rows = options.contexts.rows
    if rows is None or rows >= len(task):
        return GoldSet(key, task, source, None)
    drawn = np.random.default_rng(_SEED).choice(len(task), rows, replace=False)
    return GoldSet(key, task.take(np.sort(drawn).astype(np.int64)), source, rows)
