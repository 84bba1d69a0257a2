"""Trains a recipe into a folder, or resumes or reads what the folder holds."""

from __future__ import annotations

import gc
import json
import logging
import shutil
import time
from pathlib import Path

import torch
from accelerate import PartialState

from condsim.cache import locked
from condsim.errors import CondSimError
from condsim.io import write_text
from condsim.model.backbone import without_progress_bars
from condsim.training.data import DevData, TrainingData, load_data, revisions_of, used_rows
from condsim.training.folder import (
    CHECKPOINTS,
    HISTORY,
    RECIPE,
    REPORT,
    FinishedRun,
    check_data,
    check_same,
    finished_run,
    prepare_output,
    withdraw_output,
    writes_told,
)
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.saving import write_model
from condsim.training.trainer import Run, build_run

_LOGGER = logging.getLogger("condsim")


@without_progress_bars()
def fit(recipe: Recipe, output: Path, *, resume: bool = False) -> FinishedRun | None:
    """Trains by a recipe and writes the model folder.

    The folder holds the model as sentence-transformers saves it, ``condsim.json`` (order and
    calibration), ``README.md`` (the card), ``recipe.yaml``, ``training.json`` (the course of the
    run) and ``report.json`` (its evaluation on the dev file), which is written last. Checkpoints
    are kept until then.

    In several processes (``torchrun``, ``accelerate launch``) the process group is left open; call
    `close_process_group` before the program ends, as ``condsim train`` does.

    Args:
        output: A folder that is new, empty or, with ``resume``, holds the unfinished run.
        resume: Whether to go on from the last complete checkpoint.

    Returns:
        The finished run; None in the processes of a multi-process run but the main one.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended the run; what was done up to then can be resumed.
        InputError: If the data, the recipe or the folder break a rule.
    """
    started = time.monotonic()
    process = PartialState(cpu=not torch.accelerator.is_available())
    train, dev = load_data(recipe)
    if process.is_main_process:
        prepare_output(output, recipe, resume=resume)
        check_data(output, revisions_of(recipe), resume=resume)
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
    with run.interrupt.listening(), writes_told(output):
        run.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if run.interrupt.interrupted and run.trainer.state.global_step < run.trainer.state.max_steps:
        raise KeyboardInterrupt
    if process.is_main_process:
        _finish(run, recipe, train, dev, output, started=started)
    process.wait_for_everyone()
    return finished_run(output) if process.is_main_process else None


def close_process_group() -> None:
    """Ends the group of the processes of a run; does nothing where there is one process.

    A process that ends while the threads of its group are alive may abort, whatever its run did.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
        gc.collect()  # models and losses hold the group, in circles: until they go it has threads


def _finish(
    run: Run, recipe: Recipe, train: TrainingData, dev: DevData, output: Path, *, started: float
) -> None:
    """Writes what the folder of a trained model holds, the report last."""
    report = write_model(run.model, recipe, output, train=train, dev=dev)
    rows = len(used_rows(train, recipe))
    history: dict[str, object] = {
        "recipe": recipe.model_dump(),
        "train": {"name": train.name, "revision": train.revision, "rows": rows},
        "dev_spearman_by_epoch": _percent_by_epoch(run, "eval_spearman"),
    }
    if run.sources:
        history["sources"] = run.sources
    history["precision"] = run.arithmetic.model_dump()
    if accuracy := _percent_by_epoch(run, "eval_accuracy"):
        history["dev_accuracy_by_epoch"] = accuracy
    history["seconds"] = round(time.monotonic() - started, 1)
    write_text(output / HISTORY, json.dumps(history, indent=2))
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    report.to_json(output / REPORT)


def _percent_by_epoch(run: Run, key: str) -> list[float]:
    """A dev metric x100 after each epoch."""
    log = run.trainer.state.log_history
    return [round(100 * entry[key], 3) for entry in log if key in entry]


def run_or_resume(recipe: Recipe, folder: Path, *, wait: bool = True) -> FinishedRun | None:
    """Trains by a recipe, unless the folder holds that run already.

    A lock beside the folder keeps two processes from one run; it dies with its process.

    Args:
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
    with locked(folder.with_name(f"{folder.name}.lock"), wait=wait) as held:
        return (_finished(recipe, folder) or _train(recipe, folder)) if held else None


def _train(recipe: Recipe, folder: Path) -> FinishedRun | None:
    started = folder / RECIPE
    if not started.is_file():
        return fit(recipe, folder)
    known = load_recipe(started)
    check_same(recipe, known, folder)
    return fit(known, folder, resume=True)


def _finished(recipe: Recipe, folder: Path) -> FinishedRun | None:
    run = finished_run(folder)
    if run is not None:
        check_same(recipe, run.recipe, folder)
    return run
