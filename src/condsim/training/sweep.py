"""Sweep: the trials, the best recipe with several seeds, the held-out file once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

from condsim.cache import locked
from condsim.data.load import load_task
from condsim.errors import InputError, ModelError
from condsim.evaluation.evaluate import evaluate
from condsim.io import check_folder, write_text
from condsim.model.trained import load_trained
from condsim.training.card import baselines_for
from condsim.training.data import file_revisions, load_dev, load_train
from condsim.training.folder import FinishedRun
from condsim.training.recipe import save_recipe
from condsim.training.run import run_or_resume
from condsim.training.sweep_result import (
    Correlations,
    HeldOut,
    SweepResult,
    TrialResult,
    seed_results,
    sweep_markdown,
)
from condsim.training.sweep_spec import Point, SweepSpec
from condsim.training.sweep_study import LOCK, STUDY, run_trials, trial_folder

RESULT = "sweep.json"
TABLE = "sweep.md"
BEST = "best.yaml"
HELD_OUT = "test.json"

logger = logging.getLogger("condsim")


def run_sweep(spec: SweepSpec, output: Path) -> SweepResult:
    """Run a sweep, or continue one, or read one that is done.

    Several processes may call it at once with the same sweep and folder: they share the trials, and
    each returns the same result when all is done. The dev file alone decides which trial is best;
    the held-out file is read to check it at the start and scored once at the end.

    The folder gets ``study.db`` (Optuna's storage), ``trials/`` and ``seeds/`` (run folders),
    ``sweep.json``, ``sweep.md``, ``best.yaml`` and, with a held-out file, ``test.json``.

    Args:
        spec: The sweep.
        output: A folder that is new, empty or contains this sweep.

    Returns:
        The result.

    Raises:
        InputError: If the folder contains anything else, the data break a rule, or a held-out file
            was scored for other models.
        ModelError: If no trial has a dev Spearman.
        KeyboardInterrupt: If Ctrl-C ended it; the same call continues.
    """
    check_folder(output, what="sweep", own=(STUDY, RESULT, LOCK))
    result = _stored_result(spec, output)
    if result is not None:
        return result
    revisions = _check_data(spec)
    output.mkdir(parents=True, exist_ok=True)
    trials = run_trials(spec, output, lambda point: _run_point(spec, point, output), revisions)
    best = trials[0]
    if best.dev.spearman is None:
        raise ModelError(f"No trial in {output} has a dev Spearman: {best.error}.")
    runs = _run_seeds(spec, best, output)
    folders = {seed: _seed_folder(spec, best, seed) for seed in spec.seeds}
    result = SweepResult(
        name=spec.name,
        search=spec.search(),
        trials=tuple(trials),
        recipe=spec.recipe_for(best.parameters),
        **seed_results(folders, [run.report for run in runs]),
    )
    with locked(output / LOCK):
        return _stored_result(spec, output) or _write_result(spec, result, output)


def _run_point(spec: SweepSpec, point: Point, output: Path) -> TrialResult:
    """Train a point of the space in its own folder, or read its run."""
    folder = trial_folder(point)
    try:
        recipe = spec.recipe_for(point)
    # Only 'tpe' draws points that were not checked before.
    except InputError as error:
        raise ModelError(str(error)) from error
    run = cast(FinishedRun, run_or_resume(recipe, output / folder))
    dev = Correlations.of(run.report.model)
    return TrialResult(
        parameters=point,
        folder=folder,
        dev=dev,
        seconds=run.seconds,
        error="all its scores are equal" if dev.spearman is None else None,
    )


def _run_seeds(spec: SweepSpec, best: TrialResult, output: Path) -> list[FinishedRun]:
    """Train the best recipe with each seed; first those that no other process works on."""
    runs: dict[int, FinishedRun] = {}
    for wait in (False, True):
        for seed in [seed for seed in spec.seeds if seed not in runs]:
            logger.info("best recipe with seed %d", seed)
            recipe = spec.recipe_for(best.parameters, seed=seed)
            run = run_or_resume(recipe, output / _seed_folder(spec, best, seed), wait=wait)
            if run is not None:
                runs[seed] = run
    return [runs[seed] for seed in spec.seeds]


def _seed_folder(spec: SweepSpec, best: TrialResult, seed: int) -> str:
    """Run folder of a seed; the trials' own seed has been trained already."""
    return best.folder if seed == spec.base.seed else f"seeds/{seed}"


def _check_data(spec: SweepSpec) -> dict[str, str]:
    """Read every data file once, so that none stops the sweep hours later."""
    base = spec.base
    files = list(spec.space["train"].ends) if "train" in spec.space else [base.train]
    revisions = {base.dev: load_dev(base.dev).revision}
    for file in files:
        revisions[file] = load_train(base.replaced(train=file)).revision
    revisions |= file_revisions(base.replaced(train=files[0]).files)
    if spec.test is not None:
        held_out = load_task(Path(spec.test), require_labels=True).revision
        for file, revision in revisions.items():
            if revision == held_out:
                raise InputError(
                    f"The held-out file {spec.test} has the content of {file}, which the sweep "
                    "trains on or chooses by."
                )
    return revisions


def _stored_result(spec: SweepSpec, output: Path) -> SweepResult | None:
    """Read the result of a sweep that is done; None where something remains to do."""
    path = output / RESULT
    held_out = _stored_held_out(spec, output)
    if not path.is_file():
        return None
    result = SweepResult.from_json(path)
    if (result.name, result.search) != (spec.name, spec.search()):
        raise InputError(
            f"{path} is the result of another sweep, {result.name!r}, or of one with another "
            "recipe or space. Give another --output."
        )
    seeds = tuple(seed.seed for seed in result.seeds)
    if seeds != spec.seeds or (held_out is None and spec.test is not None):
        return None
    return result.replaced(held_out=held_out)


def _stored_held_out(spec: SweepSpec, output: Path) -> HeldOut | None:
    path = output / HELD_OUT
    if spec.test is None or not path.is_file():
        return None
    held_out = HeldOut.from_json(path)
    seeds = tuple(seed.seed for seed in held_out.seeds)
    if (held_out.file, seeds) != (spec.test, spec.seeds):
        raise InputError(
            f"{path} has the result on {held_out.file!r} with the seeds {list(seeds)}, and a "
            "held-out file is scored once. Set 'test' and 'seeds' to these."
        )
    return held_out


def _write_result(spec: SweepSpec, result: SweepResult, output: Path) -> SweepResult:
    """Score the held-out file if that remains to do, and write the files of the result."""
    if spec.test is not None:
        held_out = _stored_held_out(spec, output)
        if held_out is None:
            held_out = _score_held_out(spec.test, result, output)
            held_out.to_json(output / HELD_OUT)
        result = result.replaced(held_out=held_out)
    save_recipe(result.recipe, output / BEST)
    write_text(output / TABLE, sweep_markdown(result))
    result.to_json(output / RESULT)
    return result


def _score_held_out(file: str, result: SweepResult, output: Path) -> HeldOut:
    logger.info("scoring the held-out file %s", file)
    task = load_task(Path(file), require_labels=True)
    train = load_train(result.recipe)
    baselines, alone = baselines_for(train, task)
    reports = [
        evaluate(
            load_trained(str(output / seed.folder)),
            task,
            baselines=baselines,
            condition_only=alone,
        )
        for seed in result.seeds
    ]
    return HeldOut(
        file=file,
        revision=task.revision,
        rows=int(task.valid.sum()),
        **seed_results({seed.seed: seed.folder for seed in result.seeds}, reports),
    )
