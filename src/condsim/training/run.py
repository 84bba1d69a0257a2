"""Runs: train a recipe into a folder, or resume or read what the folder contains."""

from __future__ import annotations

import gc
import json
import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from condsim.errors import requires_extra

with requires_extra("train"):
    import torch
    from accelerate import PartialState
    from transformers import TrainerCallback

    from condsim.cache import locked, sole_process
    from condsim.io import saved_work, write_text
    from condsim.model.builders import without_progress_bars
    from condsim.training.callbacks import LOSS_STATE, load_loss_state, loss_state
    from condsim.training.card import write_model
    from condsim.training.data import (
        DevData,
        TrainingData,
        file_revisions,
        load_data,
        local_files,
        sample_rows,
    )
    from condsim.training.folder import (
        CHECKPOINTS,
        HISTORY,
        RECIPE,
        REPORT,
        FinishedRun,
        begin_run,
        check_new,
        check_resumable,
        check_same,
        finished_run,
        last_checkpoint,
    )
    from condsim.training.recipe import Recipe, load_recipe
    from condsim.training.trainer import TrainingRun, build_run

RESUME_ADVICE = "continue from the last checkpoint (condsim train: with --resume)"

logger = logging.getLogger("condsim")


def fit(
    recipe: Recipe, output: Path, *, resume: bool = False, callbacks: Sequence[TrainerCallback] = ()
) -> FinishedRun | None:
    """Train by a recipe and write the model folder.

    The folder contains the model as sentence-transformers saves it, ``condsim.json`` (order and
    calibration), ``README.md`` (the card), ``recipe.yaml``, ``training.json`` (the course of the
    run) and ``report.json`` (its evaluation on the dev file), which is written last. Checkpoints
    are kept until then.

    In several processes (``torchrun``, ``accelerate launch``) the process group is left open; call
    `close_process_group` before the program ends, as ``condsim train`` does.

    Args:
        recipe: The recipe.
        output: A folder that is new, empty or, with ``resume``, contains the unfinished run.
        resume: Whether to continue from the last complete checkpoint.
        callbacks: Further callbacks of the trainer.

    Returns:
        The finished run; None in the processes of a multi-process run except the main one.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended the run; it can be resumed.
        InputError: If the data, the recipe or the folder break a rule, or another process trains in
            the folder.
    """
    # One process of several holds the lock, before anything is made.
    if not _process().is_main_process:
        return _fit(recipe, output, resume=resume, callbacks=callbacks)
    with sole_process(output):
        return _fit(recipe, output, resume=resume, callbacks=callbacks)


def _process() -> PartialState:
    return PartialState(cpu=not torch.accelerator.is_available())


@without_progress_bars()
def _fit(
    recipe: Recipe, output: Path, *, resume: bool = False, callbacks: Sequence[TrainerCallback] = ()
) -> FinishedRun | None:
    """Train in a folder whose lock is held; see `fit`."""
    started = time.monotonic()
    process = _process()
    train, dev = load_data(recipe)
    revisions = file_revisions(local_files(recipe))
    if process.is_main_process and resume:
        check_resumable(output, recipe, revisions)
    elif process.is_main_process:
        check_new(output)
    run = build_run(recipe, train, dev, output)
    for callback in callbacks:
        run.trainer.add_callback(callback)
    if process.is_main_process:
        begin_run(output, recipe, revisions, run.precision.model_dump())
    process.wait_for_everyone()
    checkpoint = None
    if resume:
        extra_file = LOSS_STATE if loss_state(run.loss) else None
        checkpoint = last_checkpoint(output, extra_file=extra_file)
    if checkpoint is not None:
        load_loss_state(run.loss, checkpoint)
        logger.info("continuing from %s", checkpoint.name)
    with run.checkpoints.listening(), saved_work(output, advice=RESUME_ADVICE):
        run.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if run.checkpoints.interrupted and run.trainer.state.global_step < run.trainer.state.max_steps:
        raise KeyboardInterrupt
    if process.is_main_process:
        _finish(run, recipe, train, dev, output, started=started)
    process.wait_for_everyone()
    return finished_run(output) if process.is_main_process else None


def close_process_group() -> None:
    """End the group of the processes of a run; does nothing where there is one process.

    A process that ends while the threads of its group are alive may abort.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
        # Models and losses refer to the group in circles, and it has threads until they are freed.
        gc.collect()


def _finish(
    run: TrainingRun,
    recipe: Recipe,
    train: TrainingData,
    dev: DevData,
    output: Path,
    *,
    started: float,
) -> None:
    """Write the files of a trained model's folder, the report last."""
    report = write_model(run.model, recipe, output, train=train, dev=dev)
    rows = len(sample_rows(train, recipe.train_rows))
    history: dict[str, object] = {
        "recipe": recipe.model_dump(),
        "train": {"name": train.name, "revision": train.revision, "rows": rows},
        "dev_spearman_by_epoch": _percent_by_epoch(run, "eval_spearman"),
    }
    if run.sources:
        history["sources"] = run.sources
    history["precision"] = run.precision.model_dump()
    if accuracy := _percent_by_epoch(run, "eval_accuracy"):
        history["dev_accuracy_by_epoch"] = accuracy
    history["seconds"] = round(time.monotonic() - started, 1)
    write_text(output / HISTORY, json.dumps(history, indent=2))
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    report.to_json(output / REPORT)


def _percent_by_epoch(run: TrainingRun, key: str) -> list[float]:
    """Dev metric x100 after each epoch."""
    log = run.trainer.state.log_history
    return [round(100 * entry[key], 3) for entry in log if key in entry]


def run_or_resume(
    recipe: Recipe, folder: Path, *, wait: bool = True, callbacks: Sequence[TrainerCallback] = ()
) -> FinishedRun | None:
    """Train by a recipe, unless the folder contains that run already.

    A lock next to the folder keeps two processes from one run; it ends with its process. Without
    ``wait`` the result is None where another process works on this run. See `fit` for callbacks.
    """
    if (run := _read_finished(recipe, folder)) is not None:
        return run
    with locked(folder.with_name(f"{folder.name}.lock"), wait=wait) as is_locked:
        if not is_locked:
            return None
        if (run := _read_finished(recipe, folder)) is not None:
            return run
        if not (folder / RECIPE).is_file():
            return _fit(recipe, folder, callbacks=callbacks)
        stored = load_recipe(folder / RECIPE)
        check_same(recipe, stored, folder)
        return _fit(stored, folder, resume=True, callbacks=callbacks)


def _read_finished(recipe: Recipe, folder: Path) -> FinishedRun | None:
    run = finished_run(folder)
    if run is not None:
        check_same(recipe, run.recipe, folder)
    return run
