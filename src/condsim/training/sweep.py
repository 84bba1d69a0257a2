"""Sweep: the trials, the best recipe with several seeds, the held-out file once.

The study is one SQLite file. It gets all its trials when it is made, in the state WAITING, and
Optuna hands them to the processes that ask. A process that trains sends heartbeats; the trial of
one that was killed is queued again, with the same values, a little after its last heartbeat.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, cast
from urllib.parse import quote

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import Trial, TrialState
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from condsim.cache import locked
from condsim.config import Settings
from condsim.data.load import load_task
from condsim.errors import InputError, ModelError
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.report import ModelResult, Report, ResultFile
from condsim.evaluation.tables import markdown_table
from condsim.io import check_folder, replacing, write_text
from condsim.model.trained import load_trained
from condsim.training.card import baselines_for
from condsim.training.data import load_dev, load_train, revisions_of
from condsim.training.folder import FinishedRun
from condsim.training.recipe import Recipe, save_recipe
from condsim.training.run import run_or_resume
from condsim.training.sweep_spec import Point, SweepSpec, point_name, point_text, value_text

STUDY = "study.db"
LOCK = "sweep.lock"
RESULT = "sweep.json"
TABLE = "sweep.md"
BEST = "best.yaml"
HELD_OUT = "test.json"

HEARTBEAT_SECONDS = 5
# A process without a heartbeat for so long counts as dead.
GRACE_SECONDS = 30
POLL_SECONDS = 1.0

# Attribute of a study: the sweep and the data it was made for.
BELONGS = "belongs"
# Attributes of a trial: its number once its process sends heartbeats, and its result.
STARTED = "started"
TRIAL_RESULT = "result"

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
    """Result of a trial.

    Attributes:
        parameters: Values by recipe key.
        folder: Folder of the run, relative to that of the sweep.
        dev: Figures on the dev file.
        seconds: Time of training.
        error: Reason why there is no result, such as a training that diverged.
    """

    parameters: dict[str, Any]
    folder: str
    dev: Correlations
    seconds: float | None
    error: str | None = None


class SeedResult(Settings):
    """Figures of the best recipe with one seed; ``folder`` is relative to that of the sweep."""

    seed: int
    folder: str
    figures: Correlations


class SeedResults(ResultFile):
    """Figures of models of several seeds, and of a baseline.

    Attributes:
        seeds: The figures of each seed.
        mean: Mean and standard deviation (``std``) over the seeds, by figure.
        condition_only: Figures of the baseline.
        baseline: Its name: ``condition-only``, or word overlap for data without conditions.
    """

    _kind: ClassVar[str] = "result of a sweep"
    _again: ClassVar[str] = "Delete it and run the sweep again, or use the condsim that wrote it."

    format: Literal[1] = 1
    seeds: tuple[SeedResult, ...]
    mean: dict[str, dict[str, float | None]]
    condition_only: Correlations
    baseline: str = "condition-only"


class HeldOut(SeedResults):
    """Figures of the best recipe on the held-out file: its name, revision and labelled rows."""

    file: str
    revision: str
    rows: int


class SweepResult(SeedResults):
    """Result of a sweep on the dev file, and on the held-out file if it names one.

    Attributes:
        name: Name of the sweep.
        search: Values that decided the trials; see ``SweepSpec.search``.
        trials: The trials, the best first, those without a result last.
        recipe: The best recipe, with the seed that the trials had.
        held_out: Result on the held-out file, stored in a file of its own.
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
        **_seed_results(folders, [run.report for run in runs]),
    )
    with locked(output / LOCK):
        return _stored_result(spec, output) or _write(spec, result, output)


def run_trials(
    spec: SweepSpec,
    folder: Path,
    run: Callable[[Point], TrialResult],
    revisions: Mapping[str, str],
) -> list[TrialResult]:
    """Run the trials of a sweep, as one of perhaps several processes; return the best first."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    with _storage_errors(folder), _open_study(spec, folder, revisions) as study:
        while True:
            # SQLite locks no row, so two processes could take one trial: the lock is held until
            # the trial is marked as started.
            with ExitStack() as lock:
                lock.enter_context(locked(folder / LOCK))
                _queue_failed(study)
                waiting = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
                if waiting:
                    study.sampler = _sampler(spec, waiting[0].number)
                    _run_next(study, spec, run, on_start=lock.close)
                    continue
            if not study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
                break
            time.sleep(POLL_SECONDS)
        # A pruned trial has an error in place of a figure.
        settled = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE, TrialState.PRUNED])
        trials = [TrialResult(**trial.user_attrs[TRIAL_RESULT]) for trial in settled]
    return sorted(trials, key=_rank)


def _rank(trial: TrialResult) -> tuple[bool, float, str]:
    """The best first, those without a result last, ties by name."""
    return trial.dev.spearman is None, -(trial.dev.spearman or 0.0), trial.folder


@contextmanager
def _storage_errors(folder: Path) -> Iterator[None]:
    """Translate errors of the storage into one line."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise InputError(f"{folder / STUDY} cannot be read or written: {reason}.") from error


@contextmanager
def _open_study(
    spec: SweepSpec, folder: Path, revisions: Mapping[str, str]
) -> Iterator[optuna.Study]:
    """Open or make the study of a folder and check that it belongs to this sweep."""
    path = folder / STUDY
    belongs = {"search": spec.search(), "data": dict(revisions)}
    with locked(folder / LOCK):
        if not path.exists():
            with replacing(path) as partial, _storage(partial) as storage:
                study = optuna.create_study(
                    study_name=spec.name, storage=storage, direction="maximize"
                )
                study.set_user_attr(BELONGS, belongs)
                for point in spec.planned() or [{}] * spec.trials:
                    study.enqueue_trial(_labelled(point, spec))
    with _storage(path) as storage:
        names = optuna.get_all_study_names(storage)
        if names != [spec.name]:
            raise InputError(f"{path} belongs to another study: {', '.join(names) or 'none'}.")
        study = optuna.load_study(study_name=spec.name, storage=storage)
        changed = ", ".join(_differences(study.user_attrs.get(BELONGS), belongs))
        if changed:
            raise InputError(
                f"{path} belongs to another study, with other values of: {changed}. Give another "
                "--output."
            )
        yield study


@contextmanager
def _storage(path: Path) -> Iterator[RDBStorage]:
    with _without_experimental_warnings():
        storage = RDBStorage(
            f"sqlite:///{quote(str(path))}",
            engine_kwargs={"connect_args": {"timeout": 60}},
            heartbeat_interval=HEARTBEAT_SECONDS,
            grace_period=GRACE_SECONDS,
        )
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def _without_experimental_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _labelled(point: Point, spec: SweepSpec) -> Point:
    """A point as Optuna stores it: the label of each listed value."""
    return {
        key: value_text(value) if spec.space[key].kind == "values" else value
        for key, value in point.items()
    }


def _differences(stored: object, expected: object, prefix: str = "") -> Iterator[str]:
    """Name the values in which two nested mappings differ."""
    if isinstance(stored, dict) and isinstance(expected, dict):
        for key in {**stored, **expected}:
            yield from _differences(stored.get(key), expected.get(key), f"{prefix}.{key}")
    elif stored != expected:
        yield prefix.removeprefix(".").removeprefix("search.") or "the sweep"


def _queue_failed(study: optuna.Study) -> None:
    """Queue the trials of dead processes and those that ended in an error again."""
    with _without_experimental_warnings():
        optuna.storages.fail_stale_trials(study)
        retry = RetryHeartbeatStaleTrialCallback()
    # The lock is held until a trial is marked, so one without a mark was killed before.
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        if trial.user_attrs.get(STARTED) != trial.number:
            study.tell(trial.number, state=TrialState.FAIL)
    trials = study.get_trials()
    retried = {number for trial in trials for number in trial.system_attrs.get("retry_history", [])}
    for trial in trials:
        if trial.state == TrialState.FAIL and trial.number not in retried:
            retry(study, trial)


def _sampler(spec: SweepSpec, number: int) -> optuna.samplers.BaseSampler:
    """Make a sampler whose draws depend on the seed and the trial, not on the process."""
    seed = (spec.seed * 1_000_003 + number) % 2**32
    # Only 'tpe' draws values; those of the others are planned.
    if spec.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.RandomSampler(seed=seed)


def _run_next(
    study: optuna.Study,
    spec: SweepSpec,
    run: Callable[[Point], TrialResult],
    *,
    on_start: Callable[[], None],
) -> None:
    """Take the next waiting trial and run it under heartbeats."""
    is_lost = False

    def objective(trial: Trial) -> float:
        nonlocal is_lost
        trial.set_user_attr(STARTED, trial.number)
        on_start()
        point = _suggest(trial, spec)
        logger.info("trial %d: %s", trial.number + 1, point_text(point))
        try:
            result = run(point)
        except ModelError as error:
            dev = Correlations(spearman=None, pearson=None)
            result = TrialResult(
                parameters=point,
                folder=_trial_folder(point),
                dev=dev,
                seconds=None,
                error=str(error),
            )
        try:
            trial.set_user_attr(TRIAL_RESULT, result.model_dump())
        except optuna.exceptions.UpdateFinishedTrialError:
            is_lost = True
            raise
        if result.dev.spearman is None:
            raise optuna.TrialPruned
        return result.dev.spearman

    try:
        study.optimize(objective, n_trials=1)
    except ValueError:
        # This process was suspended for so long that its trial was queued again. The process that
        # took it reads the result from the run folder.
        if not is_lost:
            raise


def _suggest(trial: Trial, spec: SweepSpec) -> Point:
    point: Point = {}
    for key, parameter in spec.space.items():
        if parameter.kind == "values":
            label = trial.suggest_categorical(key, parameter.labels)
            point[key] = parameter.ends[parameter.labels.index(label)]
        elif parameter.kind == "integer":
            point[key] = trial.suggest_int(key, *parameter.ends)
        else:
            is_log = parameter.kind == "log_uniform"
            point[key] = parameter.rounded(trial.suggest_float(key, *parameter.ends, log=is_log))
    return point


def _run_point(spec: SweepSpec, point: Point, output: Path) -> TrialResult:
    """Train a point of the space in its own folder, or read its run."""
    folder = _trial_folder(point)
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


def _trial_folder(point: Point) -> str:
    return f"trials/{point_name(point)}"


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


def _seed_results(folders: Mapping[int, str], reports: Sequence[Report]) -> dict[str, Any]:
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


def _check_data(spec: SweepSpec) -> dict[str, str]:
    """Read every data file once, so that none stops the sweep hours later."""
    base = spec.base
    files = list(spec.space["train"].ends) if "train" in spec.space else [base.train]
    revisions = {base.dev: load_dev(base.dev).revision}
    for file in files:
        revisions[file] = load_train(file, base.train_kind).revision
    revisions |= revisions_of(base.replaced(train=files[0]).files)
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


def _write(spec: SweepSpec, result: SweepResult, output: Path) -> SweepResult:
    """Score the held-out file if that remains to do, and write the files of the result."""
    if spec.test is not None:
        held_out = _stored_held_out(spec, output)
        if held_out is None:
            held_out = _score_held_out(spec.test, result, output)
            held_out.to_json(output / HELD_OUT)
        result = result.replaced(held_out=held_out)
    save_recipe(result.recipe, output / BEST)
    write_text(output / TABLE, to_markdown(result))
    result.to_json(output / RESULT)
    return result


def _score_held_out(file: str, result: SweepResult, output: Path) -> HeldOut:
    logger.info("scoring the held-out file %s", file)
    task = load_task(Path(file), require_labels=True)
    train = load_train(result.recipe.train, result.recipe.train_kind)
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
        **_seed_results({seed.seed: seed.folder for seed in result.seeds}, reports),
    )


def to_markdown(result: SweepResult) -> str:
    """Lay out the trials, the best recipe's seeds, the baseline and the held-out file.

    Returns:
        Markdown that ends in a newline. Spearman and Pearson are x 100.
    """
    keys = list(result.trials[0].parameters)
    dev = result.recipe.dev
    rows = []
    for rank, trial in enumerate(result.trials, start=1):
        values = [value_text(trial.parameters[key]) for key in keys]
        minutes = "-" if trial.seconds is None else f"{trial.seconds / 60:.1f}"
        rows.append([str(rank), *values, *_cells(trial.dev), minutes])
    lines = [f"# Sweep {result.name}", "", f"{len(result.trials)} trials on `{dev}`:", ""]
    lines += markdown_table(["", *keys, "Spearman", "Pearson", "minutes"], rows)
    failed = [trial for trial in result.trials if trial.error]
    lines += [""] * bool(failed)
    lines += [f"- no result: `{trial.folder}`: {trial.error}" for trial in failed]
    lines += ["", f"The best recipe with {len(result.seeds)} seeds on `{dev}`, its runs apart from"]
    lines += ["the trials unless a seed is that of the trials:", ""]
    lines += _seeds_table(result)
    if result.held_out is not None:
        file, number = result.held_out.file, result.held_out.rows
        lines += ["", f"The same models on the held-out `{file}` ({number} rows), scored once:", ""]
        lines += _seeds_table(result.held_out)
    return "\n".join(lines) + "\n"


def _seeds_table(result: SeedResults) -> list[str]:
    means = []
    for figure in result.mean.values():
        spread = "" if figure["std"] is None else f" ± {_number(figure['std'])}"
        means.append(_number(figure["mean"]) + spread)
    return markdown_table(
        ["", "Spearman", "Pearson"],
        [
            *([f"seed {seed.seed}", *_cells(seed.figures)] for seed in result.seeds),
            ["**mean ± standard deviation**", *means],
            [result.baseline, *_cells(result.condition_only)],
        ],
    )


def _cells(figures: Correlations) -> list[str]:
    return [_number(figures.spearman), _number(figures.pearson)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
