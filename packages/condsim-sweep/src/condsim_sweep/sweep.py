"""Sweep: the trials, the best recipe with several seeds, the held-out file once, their tables.

Every trial has a number. A process takes one by its lock file, which a killed process releases,
stores the values to try in ``trials/NUMBER.json`` and adds the result when the run is done.
"""

from __future__ import annotations

import json
import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

from pydantic import Field

from condsim.config import Settings
from condsim.errors import InputError, ModelError, one_line, requires_extra

with requires_extra("sweep"):
    import optuna
    from optuna.trial import TrialState
    from sqlalchemy.exc import SQLAlchemyError

with requires_extra("train"):
    from condsim.cache import check_folder, check_inputs, locked, record_inputs
    from condsim.data.load import load_task
    from condsim.evaluation.evaluate import evaluate
    from condsim.evaluation.report import ModelResult, Report, ResultFile, markdown_table
    from condsim.io import replacing, write_text
    from condsim.model.torch import load_trained
    from condsim.training.card import baselines_for
    from condsim.training.data import file_revisions, load_dev, load_train, local_files
    from condsim.training.folder import FinishedRun
    from condsim.training.recipe import Recipe, save_recipe
    from condsim.training.run import run_or_resume
    from condsim_sweep.spec import Point, SweepSpec, point_name, point_text, value_text

INPUTS = "inputs.json"
RESULT = "sweep.json"
TABLE = "sweep.md"
BEST = "best.yaml"
STUDY = "study.db"
HELD_OUT = "test.json"
LOCK = "sweep.lock"
TRIALS = "trials"

logger = logging.getLogger("condsim")


class Correlations(Settings):
    """Two correlations with the gold labels x 100; None for constant scores."""

    spearman: float | None
    pearson: float | None

    @classmethod
    def of(cls, result: ModelResult) -> Correlations:
        """Take the two from the result of an evaluation."""
        values = {name: result.metrics[name].value for name in cls.model_fields}
        return cls(**{name: None if math.isnan(v) else v for name, v in values.items()})


class TrialResult(Settings):
    """Result of a trial: the values by recipe key, the run folder, the figures on the dev file.

    ``error`` is the reason why there is none, such as a training that diverged.
    """

    parameters: dict[str, Any]
    folder: str
    dev: Correlations
    seconds: float | None
    error: str | None = None


class SeedResult(Settings):
    """Figures of the best recipe with one seed; ``folder`` is relative to the sweep's."""

    seed: int
    folder: str
    figures: Correlations


class SeedResults(ResultFile):
    """Figures of models of several seeds, with mean and ``std``, and of a baseline.

    That is ``condition-only``, or word overlap for data without conditions.
    """

    subject = "sweep result"

    format: Literal[1] = 1
    seeds: tuple[SeedResult, ...]
    mean: dict[str, dict[str, float | None]]
    condition_only: Correlations
    baseline: str = "condition-only"


class HeldOut(SeedResults):
    """Figures of the best recipe on the held-out file: its name, revision and labeled rows."""

    file: str
    revision: str
    rows: int


class SweepResult(SeedResults):
    """Result of a sweep on the dev file, and on the held-out file, stored in a separate file.

    The best trial is the first; ``recipe`` is its recipe, with the seed that the trials had, and
    ``search`` what decided the trials.
    """

    name: str
    search: dict[str, Any]
    trials: tuple[TrialResult, ...]
    recipe: Recipe
    held_out: HeldOut | None = Field(default=None, exclude=True)


def run_sweep(spec: SweepSpec, output: Path) -> SweepResult:
    """Run a sweep, or continue one, or read one that is done.

    Several processes may call it at once with the same sweep and folder: they share the trials, and
    each returns the same result when all is done. The dev file alone decides which trial is best;
    the held-out file is read to check it at the start and scored once at the end.

    The folder gets ``trials/`` and ``seeds/`` (run folders), ``sweep.json``, ``sweep.md``,
    ``best.yaml``, ``study.db`` (the trials as an Optuna study) and, with a held-out file,
    ``test.json``.

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
    check_folder(output, subject="sweep", own=(LOCK, INPUTS, RESULT))
    inputs: dict[str, Any] = {"name": spec.name, **spec.search()}
    check_inputs(output / INPUTS, inputs, subject="a sweep")
    result = _stored_result(spec, output)
    if result is not None:
        return result
    inputs["data"] = _data_revisions(spec)
    # The lock is the first file, so that another process knows the folder as a sweep.
    with locked(output / LOCK):
        record_inputs(output / INPUTS, inputs, subject="a sweep")
        (output / TRIALS).mkdir(exist_ok=True)
    trials = _run_trials(spec, output)
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


def _data_revisions(spec: SweepSpec) -> dict[str, str]:
    """Read every data file once, so that none stops the sweep hours later."""
    base = spec.base
    files = list(spec.space["train"].ends) if "train" in spec.space else [base.train]
    revisions = {base.dev: load_dev(base.dev).revision}
    for file in files:
        revisions[file] = load_train(base.replaced(train=file)).revision
    revisions |= file_revisions(local_files(base.replaced(train=files[0])))
    if spec.test is not None:
        held_out = load_task(Path(spec.test), require_labels=True).revision
        for file, revision in revisions.items():
            if revision == held_out:
                raise InputError(
                    f"The held-out file {spec.test} has the content of {file}, which the sweep "
                    "trains on or chooses by."
                )
    return revisions


def _run_trials(spec: SweepSpec, output: Path) -> list[TrialResult]:
    """Run the trials, first those that no other process works on; return the best first."""
    for wait in (False, True):
        for number in range(spec.trials):
            path = _trial_path(output, number)
            if _stored_trial(path) is None:
                with locked(path.with_suffix(".lock"), wait=wait) as is_locked:
                    if is_locked and _stored_trial(path) is None:
                        _run_trial(spec, output, number)
    return sorted(_stored_trials(spec, output).values(), key=_rank)


def _rank(trial: TrialResult) -> tuple[bool, float, str]:
    """The best first, those without a result last, ties by name."""
    return trial.dev.spearman is None, -(trial.dev.spearman or 0.0), trial.folder


def _trial_path(output: Path, number: int) -> Path:
    return output / TRIALS / f"{number}.json"


def _stored_trials(spec: SweepSpec, output: Path) -> dict[int, TrialResult]:
    """Results of the trials that are done, by number."""
    results = {number: _stored_trial(_trial_path(output, number)) for number in range(spec.trials)}
    return {number: result for number, result in results.items() if result is not None}


def _stored_trial(path: Path) -> TrialResult | None:
    """Read the result of a trial; None where it is not done."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return TrialResult(**stored) if "dev" in stored else None


def _run_trial(spec: SweepSpec, output: Path, number: int) -> None:
    """Choose the point of a trial, unless a process did that began it, and train its recipe."""
    path = _trial_path(output, number)
    if path.is_file():
        point = json.loads(path.read_text(encoding="utf-8"))["parameters"]
    else:
        planned = spec.planned()
        point = _suggest(spec, output, number) if planned is None else planned[number]
        write_text(path, json.dumps({"parameters": point}))
    folder = f"{TRIALS}/{point_name(point)}"
    logger.info("trial %d: %s", number + 1, point_text(point))
    dev = Correlations(spearman=None, pearson=None)
    seconds: float | None = None
    error: str | None = None
    try:
        try:
            recipe = spec.recipe_for(point)
        # Only 'tpe' draws points that were not checked before.
        except InputError as failure:
            raise ModelError(str(failure)) from failure
        run = cast(FinishedRun, run_or_resume(recipe, output / folder))
        dev, seconds = Correlations.of(run.report.model), run.seconds
        if dev.spearman is None:
            error = "all its scores are equal"
    except ModelError as failure:
        error = str(failure)
    result = TrialResult(parameters=point, folder=folder, dev=dev, seconds=seconds, error=error)
    write_text(path, result.model_dump_json(indent=2))


def _suggest(spec: SweepSpec, output: Path, number: int) -> Point:
    """Draw the point of a trial from the results so far; it depends on them and the seeds alone."""
    sampler = optuna.samplers.TPESampler(seed=(spec.seed * 1_000_003 + number) % 2**32)
    trial = _study(spec, output, sampler=sampler).ask(_distributions(spec))
    point: Point = {}
    for key, parameter in spec.space.items():
        value = trial.params[key]
        if parameter.kind == "values":
            value = parameter.ends[parameter.labels.index(value)]
        point[key] = parameter.rounded(value) if "uniform" in parameter.kind else value
    return point


def _study(
    spec: SweepSpec,
    output: Path,
    *,
    sampler: optuna.samplers.BaseSampler | None = None,
    storage: optuna.storages.RDBStorage | None = None,
) -> optuna.Study:
    """Make an Optuna study of the trials that are done."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    study = optuna.create_study(
        study_name=spec.name, direction="maximize", sampler=sampler, storage=storage
    )
    for trial in _stored_trials(spec, output).values():
        params = {
            key: value_text(value) if spec.space[key].kind == "values" else value
            for key, value in trial.parameters.items()
        }
        figure = trial.dev.spearman
        study.add_trial(
            optuna.trial.create_trial(
                params=params,
                distributions=_distributions(spec),
                value=figure,
                state=TrialState.PRUNED if figure is None else TrialState.COMPLETE,
                user_attrs={"folder": trial.folder},
            )
        )
    return study


def _distributions(spec: SweepSpec) -> dict[str, optuna.distributions.BaseDistribution]:
    """The space as Optuna describes it; listed values by their labels."""
    distributions: dict[str, optuna.distributions.BaseDistribution] = {}
    for key, parameter in spec.space.items():
        if parameter.kind == "values":
            distributions[key] = optuna.distributions.CategoricalDistribution(parameter.labels)
        elif parameter.kind == "integer":
            distributions[key] = optuna.distributions.IntDistribution(*parameter.ends)
        else:
            is_log = parameter.kind == "log_uniform"
            low, high = parameter.ends
            distributions[key] = optuna.distributions.FloatDistribution(low, high, log=is_log)
    return distributions


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


def _stored_result(spec: SweepSpec, output: Path) -> SweepResult | None:
    """Read the result of a sweep that is done; None where something remains to do."""
    path = output / RESULT
    held_out = _stored_held_out(spec, output)
    if not path.is_file():
        return None
    result = SweepResult.from_json(path)
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
    with replacing(output / STUDY) as partial:
        with one_line(f"{output / STUDY} cannot be written", SQLAlchemyError):
            storage = optuna.storages.RDBStorage(f"sqlite:///{quote(str(partial))}")
            _study(spec, output, storage=storage)
        storage.remove_session()
        storage.engine.dispose()
    save_recipe(result.recipe, output / BEST)
    write_text(output / TABLE, sweep_markdown(result))
    result.to_json(output / RESULT)
    return result


def _score_held_out(file: str, result: SweepResult, output: Path) -> HeldOut:
    logger.info("scoring the held-out file %s", file)
    task = load_task(Path(file), require_labels=True)
    baselines, alone = baselines_for(load_train(result.recipe), task)
    reports = [
        evaluate(
            load_trained(str(output / seed.folder)), task, baselines=baselines, condition_only=alone
        )
        for seed in result.seeds
    ]
    return HeldOut(
        file=file,
        revision=task.revision,
        rows=int(task.valid.sum()),
        **seed_results({seed.seed: seed.folder for seed in result.seeds}, reports),
    )


def seed_results(folders: Mapping[int, str], reports: Sequence[Report]) -> dict[str, Any]:
    """Fields of `SeedResults`."""
    seeds = [
        SeedResult(seed=seed, folder=folder, figures=Correlations.of(report.model))
        for (seed, folder), report in zip(folders.items(), reports, strict=True)
    ]
    means: dict[str, dict[str, float | None]] = {}
    for name in Correlations.model_fields:
        values = [getattr(seed.figures, name) for seed in seeds]
        complete = None not in values
        means[name] = {
            "mean": statistics.fmean(values) if complete else None,
            "std": statistics.stdev(values) if complete and len(values) > 1 else None,
        }
    baseline = reports[0].baselines[0]
    return {
        "seeds": tuple(seeds),
        "mean": means,
        "condition_only": Correlations.of(baseline),
        "baseline": baseline.name,
    }


def sweep_markdown(result: SweepResult) -> str:
    """Lay out trials, seeds, baseline and held-out file in Markdown; correlations are x 100."""
    keys = list(result.trials[0].parameters)
    dev = result.recipe.dev
    rows = []
    for rank, trial in enumerate(result.trials, start=1):
        values = [value_text(trial.parameters[key]) for key in keys]
        minutes = "-" if trial.seconds is None else f"{trial.seconds / 60:.1f}"
        rows.append([str(rank), *values, *_figure_cells(trial.dev), minutes])
    lines = [f"# Sweep {result.name}", "", f"{len(result.trials)} trials on `{dev}`:", ""]
    lines += markdown_table(["", *keys, "Spearman", "Pearson", "minutes"], rows)
    failed = [trial for trial in result.trials if trial.error]
    lines += [""] * bool(failed)
    lines += [f"- no result: `{trial.folder}`: {trial.error}" for trial in failed]
    lines += ["", f"The best recipe with {len(result.seeds)} seeds on `{dev}`, its runs apart from"]
    lines += ["the trials unless the trials used the seed:", "", *_seeds_table(result)]
    if result.held_out is not None:
        file, number = result.held_out.file, result.held_out.rows
        lines += ["", f"The same models on the held-out `{file}` ({number} rows), scored once:", ""]
        lines += _seeds_table(result.held_out)
    return "\n".join(lines) + "\n"


def _seeds_table(result: SeedResults) -> list[str]:
    means = []
    for figure in result.mean.values():
        spread = "" if figure["std"] is None else f" ± {_figure_text(figure['std'])}"
        means.append(_figure_text(figure["mean"]) + spread)
    return markdown_table(
        ["", "Spearman", "Pearson"],
        [
            *([f"seed {seed.seed}", *_figure_cells(seed.figures)] for seed in result.seeds),
            ["**mean ± standard deviation**", *means],
            [result.baseline, *_figure_cells(result.condition_only)],
        ],
    )


def _figure_cells(figures: Correlations) -> list[str]:
    return [_figure_text(figures.spearman), _figure_text(figures.pearson)]


def _figure_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
