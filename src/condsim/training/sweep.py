"""Runs a sweep: the trials, the best recipe with several seeds, the held-out file once."""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from condsim.cache import locked
from condsim.config import Settings
from condsim.data.load import load_task
from condsim.errors import InputError, ModelError, require
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.report import ModelResult, Report, ResultFile
from condsim.evaluation.tables import markdown_table
from condsim.io import check_folder, write_text
from condsim.model.trained import load_trained
from condsim.training.data import load_dev, load_train, revisions_of
from condsim.training.folder import FinishedRun
from condsim.training.recipe import Recipe, save_recipe
from condsim.training.run import run_or_resume
from condsim.training.saving import floor_of
from condsim.training.sweep_spec import Point, SweepSpec, point_name, value_text
from condsim.training.sweep_study import LOCK, STUDY, run_trials


class Correlations(Settings):
    """Two correlations with the gold labels x 100; None for constant scores."""

    spearman: float | None
    pearson: float | None

    @classmethod
    def of(cls, result: ModelResult) -> Correlations:
        """Takes the two from the result of an evaluation."""
        values = {name: result.metrics[name].value for name in cls.model_fields}
        return cls(**{name: None if math.isnan(v) else v for name, v in values.items()})


class TrialResult(Settings):
    """One trial."""

    parameters: dict[str, Any]  # by recipe key
    folder: str  # of the run, relative to that of the sweep
    dev: Correlations
    seconds: float | None  # of training
    error: str | None = None  # why it has no result, such as a training that diverged


class SeedResult(Settings):
    """What the best recipe reached with one seed."""

    seed: int
    folder: str  # of the run, relative to that of the sweep
    figures: Correlations


class _Reached(ResultFile):
    """What models of several seeds reached, and the baseline beside them."""

    _kind: ClassVar[str] = "result of a sweep"
    _again: ClassVar[str] = "Delete it and run the sweep again, or use the condsim that wrote it."

    format: Literal[1] = 1
    seeds: tuple[SeedResult, ...]
    mean: dict[str, dict[str, float | None]]  # and ``std``, over the seeds
    condition_only: Correlations
    baseline: str = "condition-only"  # what that line is: word overlap of data without conditions


class HeldOut(_Reached):
    """What the models of the best recipe reached on the held-out file."""

    file: str  # as the sweep names it
    revision: str  # first 12 hex digits of its SHA-256
    rows: int  # with a label


class SweepResult(_Reached):
    """The result of a sweep on the dev file, and on the held-out file if it names one."""

    name: str
    search: dict[str, Any]  # what decided the trials; see ``SweepSpec.search``
    trials: tuple[TrialResult, ...]  # the best first, those without a result last
    recipe: Recipe  # the best, with the seed that the trials had
    held_out: HeldOut | None = Field(default=None, exclude=True)  # stored in a file of its own


def to_markdown(result: SweepResult) -> str:
    """Lays the result out: the trials, the best recipe's seeds, the baseline, the held-out file.

    Returns:
        Markdown that ends in a newline. Spearman and Pearson are x 100.
    """
    keys = list(result.trials[0].parameters)
    dev = result.recipe.dev
    lines = [f"# Sweep {result.name}", "", f"{len(result.trials)} trials on `{dev}`:", ""]
    lines += markdown_table(
        ["", *keys, "Spearman", "Pearson", "minutes"],
        (
            [
                str(rank),
                *(value_text(trial.parameters[key]) for key in keys),
                *_cells(trial.dev),
                "-" if trial.seconds is None else f"{trial.seconds / 60:.1f}",
            ]
            for rank, trial in enumerate(result.trials, start=1)
        ),
    )
    failed = [trial for trial in result.trials if trial.error]
    lines += [""] * bool(failed)
    lines += [f"- no result: `{trial.folder}`: {trial.error}" for trial in failed]
    lines += ["", f"The best recipe with {len(result.seeds)} seeds on `{dev}`, its runs apart from"]
    lines += ["the trials unless a seed is that of the trials:", ""]
    lines += _seeds_table(result)
    if result.held_out is not None:
        file, rows = result.held_out.file, result.held_out.rows
        lines += ["", f"The same models on the held-out `{file}` ({rows} rows), scored once:", ""]
        lines += _seeds_table(result.held_out)
    return "\n".join(lines) + "\n"


def _seeds_table(result: _Reached) -> list[str]:
    spreads = [
        _number(one["mean"]) + ("" if one["std"] is None else f" ± {_number(one['std'])}")
        for one in result.mean.values()
    ]
    return markdown_table(
        ["", "Spearman", "Pearson"],
        [
            *([f"seed {seed.seed}", *_cells(seed.figures)] for seed in result.seeds),
            ["**mean ± standard deviation**", *spreads],
            [result.baseline, *_cells(result.condition_only)],
        ],
    )


def _cells(figures: Correlations) -> list[str]:
    return [_number(figures.spearman), _number(figures.pearson)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _means(seeds: Sequence[SeedResult]) -> dict[str, dict[str, float | None]]:
    """Mean and sample standard deviation over the seeds; None where they do not exist."""
    means: dict[str, dict[str, float | None]] = {}
    for name in ("spearman", "pearson"):
        values = [getattr(seed.figures, name) for seed in seeds]
        whole = None not in values
        means[name] = {
            "mean": statistics.fmean(values) if whole else None,
            "std": statistics.stdev(values) if whole and len(values) > 1 else None,
        }
    return means


RESULT = "sweep.json"
TABLE = "sweep.md"
BEST = "best.yaml"
HELD_OUT = "test.json"

_LOGGER = logging.getLogger("condsim")


def run_sweep(spec: SweepSpec, output: Path) -> SweepResult:
    """Runs a sweep, or goes on with one, or reads one that is done.

    Several processes may call it at once with the same sweep and folder: each takes trials, and
    each returns the same result when all is done. The dev file alone decides what is best; the
    held-out file is read to check it at the start and scored once at the end.

    The folder gets ``study.db`` (Optuna's storage), ``trials/`` and ``seeds/`` (run folders),
    ``sweep.json``, ``sweep.md``, ``best.yaml`` and, with a held-out file, ``test.json``.

    Args:
        output: A folder that is new, empty or holds this sweep.

    Raises:
        InputError: If the folder holds anything else, the data break a rule, or a held-out file
            was scored for other models.
        ModelError: If no trial has a dev Spearman.
        MissingExtraError: If the ``train`` extra is not installed.
        KeyboardInterrupt: If Ctrl-C ended it; what was done up to then is kept.
    """
    check_folder(output, what="sweep", own=(STUDY, RESULT, LOCK))
    known = _known(spec, output)
    if known is not None:
        return known
    require("sentence_transformers", extra="train")
    revisions = _check_data(spec)
    output.mkdir(parents=True, exist_ok=True)
    outcomes = run_trials(
        spec, output, lambda point: _run_point(spec, point, output), data=revisions
    )
    trials = tuple(sorted(map(_trial, outcomes), key=_rank))
    if trials[0].dev.spearman is None:
        raise ModelError(f"No trial in {output} has a dev Spearman: {trials[0].error}.")
    runs = _run_seeds(spec, trials[0], output)
    result = SweepResult(
        name=spec.name,
        search=spec.search(),
        trials=trials,
        recipe=spec.recipe_for(trials[0].parameters),
        **_reached(
            {seed: _seed_folder(spec, trials[0], seed) for seed in spec.seeds},
            [run.report for run in runs],
        ),
    )
    with locked(output / LOCK):
        return _known(spec, output) or _write(spec, result, output)


def _known(spec: SweepSpec, output: Path) -> SweepResult | None:
    """Reads the result of a sweep that is done; None where something is left to do."""
    path = output / RESULT
    held_out = _known_held_out(spec, output)
    if not path.is_file():
        return None
    result = SweepResult.from_json(path)
    if (result.name, result.search) != (spec.name, spec.search()):
        raise InputError(
            f"{path} is the result of another sweep, {result.name!r}, or of one with another "
            "recipe or space. Run the sweep it was made by, or give another --output."
        )
    seeds = tuple(seed.seed for seed in result.seeds)
    if seeds != spec.seeds or (held_out is None and spec.test is not None):
        return None
    return result.replaced(held_out=held_out)


def _known_held_out(spec: SweepSpec, output: Path) -> HeldOut | None:
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


def _check_data(spec: SweepSpec) -> dict[str, str]:
    """Reads every data file once, so that none stops the sweep hours later."""
    varied = spec.space.get("train")
    files = [spec.base.train] if varied is None else list(map(str, varied.ends))
    revisions = {spec.base.dev: load_dev(spec.base).revision}
    revisions |= {file: load_train(spec.base.replaced(train=file)).revision for file in files}
    revisions |= revisions_of(spec.base.replaced(train=files[0]))  # those of sources, too
    if spec.test is not None:
        held_out = load_task(Path(spec.test), require_labels=True).revision
        for file, revision in revisions.items():
            if revision == held_out:
                raise InputError(
                    f"The held-out file {spec.test} has the content of {file}, which the sweep "
                    "trains on or chooses by. Give another 'test', or leave it out."
                )
    return revisions


def _run_point(spec: SweepSpec, point: Point, output: Path) -> dict[str, Any]:
    """Trains a point of the space in its own folder, or reads its run."""
    try:
        recipe = spec.recipe_for(point)
    except InputError as error:  # only 'tpe' draws points that were not checked before
        raise ModelError(str(error)) from error
    run = cast(FinishedRun, run_or_resume(recipe, output / _trial_folder(point)))  # it waits
    dev = Correlations.of(run.report.model)
    reason = "all its scores are equal" if dev.spearman is None else None
    return {**dev.model_dump(), "seconds": run.seconds, "error": reason}


def _trial_folder(point: Point) -> str:
    return f"trials/{point_name(point)}"


def _trial(outcome: dict[str, Any]) -> TrialResult:
    point = outcome["parameters"]
    return TrialResult(
        parameters=point,
        folder=_trial_folder(point),
        dev=Correlations(spearman=outcome["spearman"], pearson=outcome.get("pearson")),
        seconds=outcome.get("seconds"),
        error=outcome.get("error"),
    )


def _rank(trial: TrialResult) -> tuple[bool, float, str]:
    """The best first, those without a result last, ties by name."""
    return trial.dev.spearman is None, -(trial.dev.spearman or 0.0), trial.folder


def _run_seeds(spec: SweepSpec, best: TrialResult, output: Path) -> list[FinishedRun]:
    """Trains the best recipe with each seed; first those that no other process is at."""
    runs: dict[int, FinishedRun] = {}
    for wait in (False, True):
        for seed in [seed for seed in spec.seeds if seed not in runs]:
            _LOGGER.info("best recipe with seed %d", seed)
            recipe = spec.recipe_for(best.parameters, seed=seed)
            run = run_or_resume(recipe, output / _seed_folder(spec, best, seed), wait=wait)
            if run is not None:
                runs[seed] = run
    return [runs[seed] for seed in spec.seeds]


def _seed_folder(spec: SweepSpec, best: TrialResult, seed: int) -> str:
    """The run folder of a seed; the trials' own seed has been trained already."""
    return best.folder if seed == spec.base.seed else f"seeds/{seed}"


def _write(spec: SweepSpec, result: SweepResult, output: Path) -> SweepResult:
    """Scores the held-out file if that is still to do, and writes the files of the result."""
    if spec.test is not None:
        held_out = _known_held_out(spec, output)
        if held_out is None:
            held_out = _score_held_out(spec.test, result, output)
            held_out.to_json(output / HELD_OUT)
        result = result.replaced(held_out=held_out)
    save_recipe(result.recipe, output / BEST)
    write_text(output / TABLE, to_markdown(result))
    result.to_json(output / RESULT)
    return result


def _score_held_out(file: str, result: SweepResult, output: Path) -> HeldOut:
    _LOGGER.info("scoring the held-out file %s", file)
    task = load_task(Path(file), require_labels=True)
    baselines, alone = floor_of(load_train(result.recipe), task)
    scorers = [load_trained(str(output / seed.folder)) for seed in result.seeds]
    reports = [
        evaluate(scorer, task, baselines=baselines, condition_only=alone) for scorer in scorers
    ]
    return HeldOut(
        file=file,
        revision=task.revision,
        rows=int(task.valid.sum()),
        **_reached({seed.seed: seed.folder for seed in result.seeds}, reports),
    )


def _reached(folders: Mapping[int, str], reports: Sequence[Report]) -> dict[str, Any]:
    """The result of each seed and of the baseline."""
    seeds = [
        SeedResult(seed=seed, folder=folder, figures=Correlations.of(report.model))
        for (seed, folder), report in zip(folders.items(), reports, strict=True)
    ]
    floor = reports[0].baselines[0]
    return {
        "seeds": tuple(seeds),
        "mean": _means(seeds),
        "condition_only": Correlations.of(floor),
        "baseline": floor.name,
    }
