"""Runs by folder: train what is not there yet, go on with what is unfinished, read what is done.

Sweeps and tables are made of many runs; several processes may share the work.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from condsim.errors import InputError, require
from condsim.evaluation.report import Report
from condsim.training.output import HISTORY, RECIPE, REPORT
from condsim.training.recipe import Recipe, load_recipe

__all__ = ["PLACE_KEYS", "FinishedRun", "finished_run", "run_or_resume"]

PLACE_KEYS = ("name", "license", "train", "dev")
"""Recipe keys that say what a run is called and where its data lie, not what is trained."""


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, read back from its folder.

    Attributes:
        folder: The model folder.
        recipe: The recipe it was trained by.
        report: Its evaluation on the dev file.
        dev_spearman: Spearman x100 on the dev file after each epoch.
        seconds: Wall-clock time of the process that finished it.
        train_revision: First 12 hex digits of the SHA-256 of the training file.
    """

    folder: Path
    recipe: Recipe
    report: Report
    dev_spearman: tuple[float, ...]
    seconds: float
    train_revision: str


def finished_run(folder: Path) -> FinishedRun | None:
    """Reads a finished run; needs neither torch nor the model.

    Args:
        folder: The folder of the run.

    Returns:
        The run, or None if there is none or it is unfinished.

    Raises:
        InputError: If a file of the run cannot be read.
    """
    if not (folder / REPORT).is_file():
        return None
    try:
        history = json.loads((folder / HISTORY).read_text(encoding="utf-8"))
        return FinishedRun(
            folder=folder,
            recipe=load_recipe(folder / RECIPE),
            report=Report.from_json(folder / REPORT),
            dev_spearman=tuple(history["dev_spearman_by_epoch"]),
            seconds=float(history["seconds"]),
            train_revision=str(history["train"]["revision"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} holds a run that cannot be read back: {error}") from error


def run_or_resume(recipe: Recipe, folder: Path, *, wait: bool = True) -> FinishedRun | None:
    """Trains by a recipe, unless the folder holds that run already.

    A lock beside the folder keeps two processes from one run; it dies with its process.

    Args:
        recipe: The recipe.
        folder: The folder of the run: new, or with this run, finished or not.
        wait: Whether to wait where another process is at this run.

    Returns:
        The finished run; None if another process is at it and ``wait`` is off.

    Raises:
        InputError: If the folder holds a run of another recipe, or the recipe or its data break a
            rule.
        KeyboardInterrupt: If Ctrl-C ended the run; the same call goes on with it.
        MissingExtraError: If the ``train`` extra is not installed.
    """
    run = _finished(recipe, folder)
    if run is not None:
        return run
    filelock = require("filelock", extra="train")
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder.with_name(folder.name + ".lock"), timeout=-1 if wait else 0)
    try:
        with lock:
            return _finished(recipe, folder) or _train(recipe, folder)
    except filelock.Timeout:
        return None


def _train(recipe: Recipe, folder: Path) -> FinishedRun | None:
    from condsim.training.fit import fit

    started = folder / RECIPE
    if started.is_file():
        _check_same(recipe, load_recipe(started), folder)
        fit(load_recipe(started), folder, resume=True)
    else:
        fit(recipe, folder)
    return finished_run(folder)


def _finished(recipe: Recipe, folder: Path) -> FinishedRun | None:
    run = finished_run(folder)
    if run is not None:
        _check_same(recipe, run.recipe, folder)
    return run


def _check_same(recipe: Recipe, other: Recipe, folder: Path) -> None:
    wanted, found = _trained_by(recipe), _trained_by(other)
    changed = [key for key, value in wanted.items() if found[key] != value]
    if changed:
        raise InputError(
            f"{folder} holds a run with other values of: {', '.join(changed)}. Give another "
            "folder, or remove that one."
        )


def _trained_by(recipe: Recipe) -> dict[str, Any]:
    """The keys that decide what is trained, without objectives of weight 0."""
    values = {key: value for key, value in recipe.to_dict().items() if key not in PLACE_KEYS}
    values["objective"] = {term: weight for term, weight in recipe.objective.items() if weight}
    return values
