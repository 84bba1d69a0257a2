"""The output folder of a run: what may be written where, and what a run can be resumed from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from condsim.errors import InputError
from condsim.training.recipe import Recipe, load_recipe, save_recipe

CHECKPOINTS = "checkpoints"
HISTORY = "training.json"
RECIPE = "recipe.yaml"
REPORT = "report.json"


def prepare_output(output: Path, recipe: Recipe, *, resume: bool) -> None:
    """Makes the output folder, or checks that it holds an unfinished run of the same recipe.

    Args:
        output: The folder of the run.
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
    started = load_recipe(known).to_dict()
    changed = [key for key, value in recipe.to_dict().items() if started[key] != value]
    if changed:
        raise InputError(
            f"The run in {output} was started with other values of: {', '.join(changed)}. "
            "Resume it with the same recipe, or start anew in another folder."
        )


def withdraw_output(output: Path) -> None:
    """Takes back the folder of a run that could not be started, so that it can be started anew."""
    (output / RECIPE).unlink(missing_ok=True)
    for folder in (output / CHECKPOINTS, output):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def last_checkpoint(output: Path, *, also: str | None = None) -> Path | None:
    """Finds the newest complete checkpoint and removes those a kill left half-written.

    The library writes a checkpoint's ``trainer_state.json`` last, so one that can be read is
    complete, but for the file that the run itself adds.

    Args:
        output: The folder of the run.
        also: Name of a file that a complete checkpoint has beside the library's.

    Returns:
        The checkpoint's folder, or None where there is none yet.
    """
    complete: dict[int, Path] = {}
    for folder in (output / CHECKPOINTS).glob("checkpoint-*"):
        try:
            state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
            if also is not None:
                (folder / also).stat()
        except (OSError, ValueError):
            shutil.rmtree(folder, ignore_errors=True)  # another process may be at it too
        else:
            complete[int(state["global_step"])] = folder
    return complete[max(complete)] if complete else None
