"""Optuna study of a sweep: hands its trials to processes, and takes them back from dead ones.

The study is one SQLite file. It gets all its trials when it is made, in the state WAITING, and
Optuna hands them to the processes that ask. A process that trains sends heartbeats; the trial of
one that was killed is queued again, with the same values, a little after its last heartbeat.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from condsim.cache import locked
from condsim.errors import InputError, ModelError
from condsim.io import replacing
from condsim.training.sweep_result import Correlations, TrialResult
from condsim.training.sweep_spec import Point, SweepSpec, point_name, point_text, value_text

STUDY = "study.db"
LOCK = "sweep.lock"

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
                    study.enqueue_trial(_stored_point(point, spec))
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


def _stored_point(point: Point, spec: SweepSpec) -> Point:
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
                folder=trial_folder(point),
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


def trial_folder(point: Point) -> str:
    """Run folder of a point, relative to that of the sweep."""
    return f"trials/{point_name(point)}"
