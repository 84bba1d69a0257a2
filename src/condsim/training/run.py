"""Runs by folder: train what is not there yet, go on with what is unfinished, read what is done.

Sweeps and tables are made of many runs; several processes may share the work.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState

from condsim.encoders import without_progress_bars
from condsim.errors import CondSimError, InputError, require
from condsim.evaluation import Report
from condsim.files import replacing
from condsim.training.data import DevData, TrainingData, load_dev, load_train, used_rows
from condsim.training.finish import write_model
from condsim.training.output import (
    CHECKPOINTS,
    HISTORY,
    RECIPE,
    REPORT,
    prepare_output,
    withdraw_output,
)
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.trainer import Run, build_run

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True)
class TrainingResult:
    """What a finished run is worth.

    Attributes:
        output: The model folder.
        report: The evaluation on the dev file.
        dev_spearman: Spearman x100 on the dev file after each epoch.
        seconds: Wall-clock time of this process, training and evaluation.
        dev_accuracy: Percentage of the triplets of the dev file whose anchor is nearer to its
            positive, after each epoch; empty where the dev file has no triplets.
    """

    output: Path
    report: Report
    dev_spearman: tuple[float, ...]
    seconds: float
    dev_accuracy: tuple[float, ...] = ()

    def summary(self) -> str:
        """Says in one line where the model is and how it does."""
        best = self.report.model.metrics["spearman"]
        floor = self.report.baselines[0]
        source = "the condition alone" if floor.name == "condition-only" else floor.name
        accuracy = f"dev accuracy {max(self.dev_accuracy):.1f}, " if self.dev_accuracy else ""
        return (
            f"{self.output}: {accuracy}dev Spearman {best.value:.1f} "
            f"[{best.low:.1f}, {best.high:.1f}]; "
            f"from {source} {floor.metrics['spearman'].value:.1f}"
        )


@without_progress_bars()
def fit(recipe: Recipe, output: Path, *, resume: bool = False) -> TrainingResult | None:
    """Trains by a recipe and writes the model folder.

    The folder holds the model as sentence-transformers saves it, ``condsim.json`` (order and
    calibration), ``README.md`` (the card), ``recipe.yaml``, ``training.json`` (the course of the
    run) and ``report.json`` (its evaluation on the dev file), which is written last. Checkpoints
    are kept until then.

    In several processes (``torchrun``, ``accelerate launch``) the process group is left open; call
    `close_process_group` before the program ends, as ``condsim train`` does.

    Args:
        recipe: The recipe.
        output: A folder that is new, empty or, with ``resume``, holds the unfinished run.
        resume: Whether to go on from the last complete checkpoint.

    Returns:
        The result; None in the processes of a multi-process run that are not the main one.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended the run; what was done up to then can be resumed.
        InputError: If the data, the recipe or the folder break a rule.
    """
    started = time.monotonic()
    process = PartialState(cpu=not torch.accelerator.is_available())
    train, dev = load_train(recipe), load_dev(recipe)
    if process.is_main_process:
        prepare_output(output, recipe, resume=resume)
    process.wait_for_everyone()
    try:
        run = build_run(recipe, train, dev, output)
    except CondSimError:
        if process.is_main_process and not resume:
            withdraw_output(output)
        raise
    checkpoint = run.last_checkpoint(output) if resume else None
    if checkpoint is not None:
        _LOGGER.info("going on from %s", checkpoint.name)
    run.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if run.interrupt.interrupted and run.trainer.state.global_step < run.trainer.state.max_steps:
        raise KeyboardInterrupt
    result = None
    if process.is_main_process:
        result = _finish(run, recipe, train, dev, output, started=started)
    process.wait_for_everyone()
    return result


def close_process_group() -> None:
    """Ends the group of the processes of a run; does nothing where there is one process.

    A process that ends while the threads of its group are alive may abort, whatever its run did.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _finish(
    run: Run, recipe: Recipe, train: TrainingData, dev: DevData, output: Path, *, started: float
) -> TrainingResult:
    report = write_model(run.model, recipe, output, train=train, dev=dev)
    result = TrainingResult(
        output=output,
        report=report,
        dev_spearman=_history(run, "eval_spearman"),
        dev_accuracy=_history(run, "eval_accuracy"),
        seconds=time.monotonic() - started,
    )
    with replacing(output / HISTORY) as partial:
        partial.write_text(json.dumps(_record(recipe, result, train), indent=2), encoding="utf-8")
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    report.to_json(output / REPORT)
    return result


def _history(run: Run, key: str) -> tuple[float, ...]:
    """A dev figure x100 after each epoch."""
    return tuple(100 * entry[key] for entry in run.trainer.state.log_history if key in entry)


def _record(recipe: Recipe, result: TrainingResult, train: TrainingData) -> dict[str, object]:
    """The content of ``training.json``: what no evaluation could tell."""
    rows = len(used_rows(train, recipe))
    return {
        "recipe": recipe.to_dict(),
        "train": {"name": train.name, "revision": train.revision, "rows": rows},
        "dev_spearman_by_epoch": [round(value, 3) for value in result.dev_spearman],
        **(
            {"dev_accuracy_by_epoch": [round(value, 3) for value in result.dev_accuracy]}
            if result.dev_accuracy
            else {}
        ),
        "seconds": round(result.seconds, 1),
    }


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
