"""The folder of a run: checks it before writing, and finds what to resume or read."""

from __future__ import annotations

import json
import logging
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from condsim.errors import InputError
from condsim.evaluation.report import Report
from condsim.io import write_text
from condsim.training.recipe import Recipe, load_recipe, save_recipe

CHECKPOINTS = "checkpoints"
HISTORY = "training.json"
RECIPE = "recipe.yaml"
REPORT = "report.json"
_DATA = "data.json"  # beside the checkpoints
_UNWRITTEN = ("os error", "[Errno", "PytorchStreamWriter", "inline_container")  # in messages
_ARCHIVES = (".pt", ".pth", ".bin")  # what torch.save writes

_LOGGER = logging.getLogger("condsim")

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
        """Says in one line where the model is and how it does."""
        best = self.report.model.metrics["spearman"]
        floor = self.report.baselines[0]
        source = "the condition alone" if floor.name == "condition-only" else floor.name
        accuracy = ""
        if self.dev_accuracy:
            kept = max(self.dev_accuracy) if self.recipe.keep == "best" else self.dev_accuracy[-1]
            accuracy = f"dev accuracy {kept:.1f}, "
        return (
            f"{self.folder}: {accuracy}dev Spearman {best.value:.1f} "
            f"[{best.low:.1f}, {best.high:.1f}]; "
            f"from {source} {floor.metrics['spearman'].value:.1f}"
        )


def finished_run(folder: Path) -> FinishedRun | None:
    """Reads a finished run; needs neither torch nor the model.

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
            dev_accuracy=tuple(history.get("dev_accuracy_by_epoch", ())),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} holds a run that cannot be read back: {error}") from error


def check_same(recipe: Recipe, other: Recipe, folder: Path) -> None:
    """Checks that the run in a folder is one that a recipe would train."""
    wanted, found = _trained_by(recipe), _trained_by(other)
    changed = [key for key, value in wanted.items() if found[key] != value]
    if changed:
        raise InputError(
            f"{folder} holds a run with other values of: {', '.join(changed)}. Give another "
            "folder, or remove that one."
        )


def _trained_by(recipe: Recipe) -> dict[str, Any]:
    """The keys that decide what is trained, without objectives of weight 0."""
    values = recipe.model_dump(exclude=set(PLACE_KEYS))
    return {**values, "objective": {term: recipe.objective[term] for term in recipe.terms}}


def prepare_output(output: Path, recipe: Recipe, *, resume: bool) -> None:
    """Makes the output folder, or checks that it holds an unfinished run of the same recipe.

    Args:
        recipe: The recipe about to be run.
        resume: Whether to go on with what the folder holds.

    Raises:
        InputError: If the folder holds anything and ``resume`` is off, or it holds a finished run
            or one of another recipe and ``resume`` is on.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; --output must be a folder.")
    known = output / RECIPE
    if not resume:
        # A kill while the recipe was written leaves no more than its unfinished file.
        if output.is_dir() and any(path.suffix != ".partial" for path in output.iterdir()):
            raise InputError(
                f"{output} is not empty; give another --output, or --resume to go on with its run."
            )
        output.mkdir(parents=True, exist_ok=True)
        save_recipe(recipe, known)
        return
    if not known.is_file():
        raise InputError(f"{output} holds no run to resume; leave out --resume to start one.")
    if (output / REPORT).is_file():
        raise InputError(f"The run in {output} is finished; there is nothing to resume.")
    started = dict(load_recipe(known))
    changed = [key for key, value in recipe if started[key] != value]
    if changed:
        raise InputError(
            f"The run in {output} was started with other values of: {', '.join(changed)}. "
            "Resume it with the same recipe, or start anew in another folder."
        )


def withdraw_output(output: Path) -> None:
    """Takes back the folder of a run that could not be started, so that it can be started anew."""
    for name in (RECIPE, HISTORY, f"{CHECKPOINTS}/{_DATA}"):
        (output / name).unlink(missing_ok=True)
    for folder in (output / CHECKPOINTS, output):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def last_checkpoint(output: Path, *, also: str | None = None) -> Path | None:
    """Finds the newest complete checkpoint and removes those a kill left half-written.

    The library writes a checkpoint's ``trainer_state.json`` last, so one that can be read is
    complete, but for the file ``also`` that the run itself adds. One that is damaged since counts
    as half-written.
    """
    complete: dict[int, Path] = {}
    for folder in (output / CHECKPOINTS).glob("checkpoint-*"):
        try:
            state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
            step = int(state["global_step"])
            if also is not None:
                (folder / also).stat()
            _check_whole(folder)
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            _LOGGER.info("%s is not whole and is removed: %s", folder, error)
            shutil.rmtree(folder, ignore_errors=True)  # another process may be at it too
        else:
            complete[step] = folder
    return complete[max(complete)] if complete else None


def _check_whole(checkpoint: Path) -> None:
    """Raises ValueError if a file of weights or of the optimizer is cut or empty."""
    from safetensors import SafetensorError, safe_open

    for path in checkpoint.rglob("*"):
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, framework="np"):
                    pass
        except SafetensorError as error:
            raise ValueError(f"{path.name}: {error}") from error
        if path.suffix in _ARCHIVES and not zipfile.is_zipfile(path):
            raise ValueError(f"{path.name} is cut off")


def check_data(output: Path, revisions: Mapping[str, str], *, resume: bool) -> None:
    """Keeps what the files of a run hold; a resumed run must have the same.

    Args:
        revisions: What identifies the content of each file, by its name.

    Raises:
        InputError: If a file has changed since the run was started.
    """
    path = output / CHECKPOINTS / _DATA
    if resume and path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
        # Runs begun before a kind of file was kept, such as vectors, lack its revisions.
        changed = [file for file, one in revisions.items() if known.get(file, one) != one]
        if changed:
            raise InputError(
                f"{', '.join(changed)} changed since the run in {output} was started. Resume it "
                "with the file as it was, or start anew in another folder."
            )
        return
    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps(dict(revisions)))


@contextmanager
def writes_told(output: Path) -> Iterator[None]:
    """Raises an InputError that says in a line that a checkpoint could not be written."""
    try:
        yield
    except Exception as error:  # of safetensors or torch, which share no class
        text = " ".join(str(error).split())
        if not any(mark in text for mark in _UNWRITTEN):
            raise
        raise InputError(
            f"{output}: a checkpoint cannot be written ({text[:120]}). Make space; the same "
            "command with --resume goes on from the one before."
        ) from error
