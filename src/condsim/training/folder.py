"""Folder of a run: checks before writing, the checkpoint to resume from, the finished run."""

from __future__ import annotations

import json
import logging
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from condsim.cache import changed_keys, check_folder, check_unchanged
from condsim.errors import InputError, one_line
from condsim.evaluation.report import Report
from condsim.io import write_text
from condsim.training.recipe import PLACE_KEYS, Recipe, load_recipe, save_recipe

CHECKPOINTS = "checkpoints"
HISTORY = "training.json"
RECIPE = "recipe.yaml"
REPORT = "report.json"

# Revisions of the data files, next to the checkpoints.
DATA_REVISIONS = "data.json"

logger = logging.getLogger("condsim")


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, read back from its folder.

    Attributes:
        dev_spearman: Spearman x100 on the dev file after each epoch.
        seconds: Wall-clock time of the process that finished it.
        dev_accuracy: Percentage of the triplets of the dev file whose anchor is nearer to its
            positive, after each epoch; empty where the dev file has no triplets.
    """

    folder: Path
    recipe: Recipe
    report: Report
    dev_spearman: tuple[float, ...]
    seconds: float
    train_revision: str
    dev_accuracy: tuple[float, ...] = ()

    def summary(self) -> str:
        """Describe in one line where the model is and how well it does."""
        spearman = self.report.model.metrics["spearman"]
        baseline = self.report.baselines[0]
        source = "the condition alone" if baseline.name == "condition-only" else baseline.name
        accuracy = ""
        if self.dev_accuracy:
            is_best = self.recipe.keep == "best"
            value = max(self.dev_accuracy) if is_best else self.dev_accuracy[-1]
            accuracy = f"dev accuracy {value:.1f}, "
        return (
            f"{self.folder}: {accuracy}dev Spearman {spearman.value:.1f} "
            f"[{spearman.low:.1f}, {spearman.high:.1f}]; "
            f"from {source} {baseline.metrics['spearman'].value:.1f}"
        )


def finished_run(folder: Path) -> FinishedRun | None:
    """Read a finished run; return None if there is none or it is unfinished."""
    if not (folder / REPORT).is_file():
        return None
    causes = (OSError, ValueError, KeyError, TypeError)
    with one_line(f"The run in {folder} cannot be read", *causes):
        history = json.loads((folder / HISTORY).read_text(encoding="utf-8"))
        return FinishedRun(
            folder=folder,
            recipe=load_recipe(folder / RECIPE),
            report=Report.from_json(folder / REPORT),
            dev_spearman=tuple(history["dev_spearman_by_epoch"]),
            seconds=float(history["seconds"]),
            train_revision=str(history["train"]["revision"]),
            dev_accuracy=tuple(history.get("dev_accuracy_by_epoch", ())),
        )


def check_same(recipe: Recipe, stored: Recipe, folder: Path) -> None:
    """Check that the run in a folder is one that a recipe would train."""
    changed = changed_keys(_deciding_values(recipe), _deciding_values(stored))
    check_unchanged(folder, changed, subject="a run")


def _deciding_values(recipe: Recipe) -> dict[str, Any]:
    """Keys that decide what is trained, without objectives of weight 0."""
    return {**recipe.model_dump(exclude=set(PLACE_KEYS)), "objective": recipe.terms}


def check_new(output: Path) -> None:
    """Check that a new run can be written into a folder: that it is missing or empty."""
    check_folder(output, subject="run", own=[RECIPE])
    if (output / RECIPE).is_file():
        raise InputError(
            f"{output} is not empty; give another --output, or --resume to continue its run."
        )


def check_resumable(output: Path, recipe: Recipe, revisions: Mapping[str, str]) -> None:
    """Check that a folder contains an unfinished run of the same recipe and files."""
    if (output / REPORT).is_file() or not (output / RECIPE).is_file():
        raise InputError(f"{output} has no unfinished run to resume; leave out --resume.")
    path = output / CHECKPOINTS / DATA_REVISIONS
    files = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    changed = changed_keys(dict(recipe), dict(load_recipe(output / RECIPE)))
    changed += changed_keys(revisions, {**revisions, **files})
    check_unchanged(output, changed, subject="a run")


def begin_run(
    output: Path, recipe: Recipe, revisions: Mapping[str, str], precision: Mapping[str, object]
) -> None:
    """Write what a resumed run must have in common with this one."""
    (output / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
    save_recipe(recipe, output / RECIPE)
    write_text(output / HISTORY, json.dumps({"precision": dict(precision)}, indent=2))
    write_text(output / CHECKPOINTS / DATA_REVISIONS, json.dumps(dict(revisions)))


def last_checkpoint(output: Path, *, extra_file: str | None = None) -> Path | None:
    """Find the newest complete checkpoint, and remove those that a kill left half-written.

    The library writes a checkpoint's ``trainer_state.json`` last, so one that can be read is
    complete, except for ``extra_file``, which the run itself adds. A checkpoint that was damaged
    later counts as half-written.
    """
    complete: dict[int, Path] = {}
    for folder in (output / CHECKPOINTS).glob("checkpoint-*"):
        try:
            state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
            step = int(state["global_step"])
            if extra_file is not None:
                (folder / extra_file).stat()
            for path in folder.rglob("*"):
                _check_complete(path)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, SafetensorError) as error:
            logger.info("%s is incomplete and is removed: %s", folder, error)
            # Another process may be removing it as well.
            shutil.rmtree(folder, ignore_errors=True)
        else:
            complete[step] = folder
    return complete[max(complete)] if complete else None


def _check_complete(path: Path) -> None:
    """Check that a file of weights or of the optimizer is not cut or empty."""
    if path.suffix == ".safetensors":
        with safe_open(path, framework="np"):
            pass
    if path.suffix in (".pt", ".pth", ".bin") and not zipfile.is_zipfile(path):
        raise ValueError(f"{path.name} is cut off")
