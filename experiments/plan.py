"""What an experiment has to run: one line for each row and backbone, each with its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.prompting import Scoring
from condsim.training import Recipe, load_recipe
from experiments.backbones import DEFAULT_BACKBONE, PAPER_BACKBONES, Backbone, recipe_file
from experiments.experiment import Experiment, Row
from experiments.gold_sets import ContextsOptions
from experiments.naming import canonical, digest, run_folder

_DECIDED = {
    "train": "--data",
    "dev": "--data",
    "backbone": "--backbone",
    "seed": "--seeds",
    "name": "the recipe",
}
_FILES = {"c-sts": ("train.csv", "dev.csv"), "sts-b": ("sts-train.csv", "sts-dev.csv")}


@dataclass(frozen=True)
class PromptOptions:
    """Which language models are asked, and what that may cost.

    Attributes:
        models: The models.
        base_url: Address of the OpenAI-compatible server they are all behind; if None they run on
            this machine, but for the papers' models that only OpenAI has.
        scoring: How an answer becomes a score (`condsim.prompting.scorer.Scoring`).
        max_requests: Prompts to send at most, over all runs; no limit if None.
        max_tokens: Tokens of prompts and answers at most, over all runs; no limit if None.
        unlisted: Whether to use a model that the server does not list.
    """

    models: tuple[Backbone, ...] = ()
    base_url: str | None = None
    scoring: Scoring = "text"
    max_requests: int | None = None
    max_tokens: int | None = None
    unlisted: bool = False


@dataclass(frozen=True)
class Options:
    """What a person may choose.

    Attributes:
        data: Folder with ``train.csv`` and ``dev.csv`` of C-STS.
        stsb: Folder with ``sts-train.csv`` and ``sts-dev.csv`` of STS-B.
        runs: Folder of the runs of all experiments.
        backbones: What to run on.
        overrides: Recipe keys to change in every run, such as ``"epochs=2"``.
        seeds: Number of seeds of every row; what the experiment says if None.
        full: Whether to run the rows that are left out by default.
        prompts: What is chosen for experiments that prompt language models; the four before it
            have no part in those.
        contexts: What is chosen for experiments of similarity from contexts; ``backbones`` and
            ``seeds`` have no part in those.
    """

    data: Path
    stsb: Path
    runs: Path
    backbones: tuple[Backbone, ...] = (DEFAULT_BACKBONE,)
    overrides: tuple[str, ...] = ()
    seeds: int | None = None
    full: bool = False
    prompts: PromptOptions = PromptOptions()
    contexts: ContextsOptions = field(default_factory=ContextsOptions)


@dataclass(frozen=True)
class DataFiles:
    """The two files of a task.

    Attributes:
        train: Training file.
        dev: Dev file.
        train_revision: First 12 hex digits of the training file's SHA-256.
        dev_revision: The same of the dev file.
    """

    train: Path
    dev: Path
    train_revision: str
    dev_revision: str


@dataclass(frozen=True)
class PlannedRun:
    """A run that may be finished or not.

    Attributes:
        folder: Where it is, or will be.
        recipe: What it runs.
        data: Its files.
        trained: Whether there is anything to train; False for a backbone as it is.
    """

    folder: Path
    recipe: Recipe
    data: DataFiles
    trained: bool = True


@dataclass(frozen=True)
class PlannedLine:
    """A row of the experiment on one backbone.

    Attributes:
        row: The row.
        backbone: The backbone.
        runs: One run for each seed; empty if nothing is to be run here.
    """

    row: Row
    backbone: Backbone
    runs: tuple[PlannedRun, ...]


def data_files(task: str, options: Options) -> DataFiles:
    """Finds the files of a task.

    Args:
        task: ``c-sts`` or ``sts-b``.
        options: Where to look.

    Returns:
        The files with their revisions.

    Raises:
        InputError: If one of them is not there.
    """
    flag, folder = ("--data", options.data) if task == "c-sts" else ("--stsb", options.stsb)
    train, dev = (folder / name for name in _FILES[task])
    for path in (train, dev):
        if not path.is_file():
            raise InputError(
                f"There is no {path}: {flag} must name a folder that holds "
                f"{train.name} and {dev.name}."
            )
    return DataFiles(train, dev, sha256_of(train)[:12], sha256_of(dev)[:12])


def plan(experiment: Experiment, options: Options) -> tuple[PlannedLine, ...]:
    """Lists what an experiment trains or measures; nothing is run.

    A backbone of the papers is run in the rows where the paper has a number for it (with
    ``full``: in all), any other backbone in every row. Rows of backbones that are not asked for
    are there without runs where the paper has a number.

    Args:
        experiment: The experiment.
        options: What was chosen.

    Returns:
        The lines, row by row; none for an experiment that prompts language models
        (`experiments.prompt_plan.plan_prompts`) or is one of similarity from contexts
        (`experiments.contexts_plan.plan_contexts`).

    Raises:
        InputError: If the data are not there, or an override is of no use or not allowed.
    """
    _check(experiment, options)
    tasks = dict.fromkeys(row.task for row in experiment.rows.values() if row.recipe)
    data = {task: data_files(task, options) for task in tasks}
    asked = {backbone.key: backbone for backbone in options.backbones}
    lines = []
    for row in experiment.rows.values():
        for backbone in {**PAPER_BACKBONES, **asked}.values():
            published = experiment.has_number(row.key, backbone.key)
            wanted = backbone.key in asked and (options.full or not row.full)
            if backbone.in_papers and experiment.published and not options.full:
                wanted = wanted and published
            if row.does_not_apply is not None and backbone.key in asked:
                lines.append(PlannedLine(row, backbone, ()))
            elif wanted and row.recipe is not None:
                runs = _runs(experiment, row, row.recipe, backbone, options, data[row.task])
                lines.append(PlannedLine(row, backbone, runs))
            elif published:
                lines.append(PlannedLine(row, backbone, ()))
    return tuple(lines)


def unique_runs(lines: Sequence[PlannedLine]) -> tuple[PlannedRun, ...]:
    """All runs of some lines, each once.

    Args:
        lines: What `plan` gave.

    Returns:
        The runs in the order of the lines.
    """
    return tuple({run.folder: run for line in lines for run in line.runs}.values())


def _check(experiment: Experiment, options: Options) -> None:
    if options.seeds is not None and options.seeds < 1:
        raise InputError(f"--seeds must be at least 1. Got {options.seeds}.")
    taken = {key.split(".")[0] for row in experiment.rows.values() for key in row.set}
    for text in options.overrides:
        key = text.partition("=")[0].strip().split(".")[0]
        if key in _DECIDED:
            raise InputError(f"--set {text!r}: '{key}' is decided by {_DECIDED[key]}.")
        if key in taken:
            raise InputError(
                f"--set {text!r}: the rows of {experiment.name} differ in '{key}', so it cannot be "
                "changed for all of them."
            )


def _runs(
    experiment: Experiment,
    row: Row,
    base: str,
    backbone: Backbone,
    options: Options,
    data: DataFiles,
) -> tuple[PlannedRun, ...]:
    recipe = _recipe(row, base, backbone, options, data)
    revisions = {"train_revision": data.train_revision, "dev_revision": data.dev_revision}
    if experiment.kind == "zero-shot":
        return (_zero_shot(recipe, options, data),)
    seeds = options.seeds or row.seeds
    recipes = [recipe.replaced(seed=recipe.seed + index) for index in range(seeds)]
    return tuple(
        PlannedRun(run_folder(options.runs, one, **revisions), one, data) for one in recipes
    )


def _recipe(row: Row, base: str, backbone: Backbone, options: Options, data: DataFiles) -> Recipe:
    """The recipe of a row: its base recipe, then the row, the data and the command line."""
    changes: dict[str, object] = {**row.set, **row.set_for.get(backbone.key, {})}
    changes |= {"train": str(data.train), "dev": str(data.dev)}
    if backbone != DEFAULT_BACKBONE and not backbone.in_papers:
        changes["name"] = f"{backbone.key}-{base}"
    if not backbone.in_papers or base.startswith("stsb"):
        changes["backbone"] = backbone.model
    texts = [*_as_overrides(changes), *options.overrides]
    return canonical(load_recipe(recipe_file(base, backbone), overrides=texts))


def _as_overrides(changes: Mapping[str, object]) -> list[str]:
    return [f"{key}={json.dumps(value)}" for key, value in changes.items()]  # JSON is YAML


def _zero_shot(recipe: Recipe, options: Options, data: DataFiles) -> PlannedRun:
    """The backbone as it is: no layer that would have to be trained."""
    plain = recipe.replaced(transform=False)
    keys = ("backbone", "pooling", "order", "max_seq_length")
    code = digest(
        {key: getattr(plain, key) for key in keys}
        | {"zero-shot": data.dev_revision, "train": data.train_revision}
    )
    name = Path(recipe.backbone).name.lower()
    return PlannedRun(options.runs / f"{name}-zero-shot-{code}", plain, data, trained=False)
