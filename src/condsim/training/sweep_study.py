"""The trials of a sweep in an Optuna study: handed out to processes, taken back from dead ones."""

# The study is one SQLite file. It gets all its trials when it is made, as waiting *slots*, which
# Optuna hands out to whichever process asks. A process that trains sends a heartbeat; the slot of
# one that was killed is queued again, with the same values, a little after its last beat.

from __future__ import annotations

import logging
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
from optuna import Study
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage
from optuna.trial import Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from condsim.cache import locked
from condsim.errors import InputError, ModelError
from condsim.io import replacing
from condsim.training.sweep_spec import Parameter, Point, SweepSpec, Values, point_text, value_text

STUDY = "study.db"
LOCK = "sweep.lock"
HEARTBEAT = 5  # seconds
GRACE = 30  # seconds without a heartbeat after which a process counts as dead
POLL = 1.0  # seconds

_BELONGS = "belongs"  # study attribute: what the study was made for
_SLOT = "slot"  # trial attribute: which slot it fills
_CLAIMED = "claimed"  # trial attribute: its process sends heartbeats
_RESULT = "result"  # trial attribute: what running it gave

_LOGGER = logging.getLogger("condsim")


class _NoSlotLeft(Exception):  # noqa: N818  (no error: another process took the last one)
    """A trial beyond those that were queued."""


def run_trials(
    spec: SweepSpec,
    folder: Path,
    run: Callable[[Point], Mapping[str, Any]],
    *,
    data: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Runs the trials of a sweep, as one of perhaps several processes, until all are done."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    with (
        _faults_told(folder),
        _opened(spec, folder, belongs={"search": spec.search(), "data": data}) as study,
    ):
        announced = False
        while True:
            with locked(folder / LOCK):
                _queue(study, spec)
            waiting = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
            if waiting:
                study.sampler = _sampler(spec, waiting[0].number)
                _run_one(study, spec, run, lock=folder / LOCK)
                continue
            running = study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
            if not running:
                break
            if not announced:
                _LOGGER.info("waiting for %d trials of other processes", len(running))
                announced = True
            time.sleep(POLL)
        # PRUNED: without a result for good
        settled = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE, TrialState.PRUNED])
        results = {trial.user_attrs[_SLOT]: trial.user_attrs[_RESULT] for trial in settled}
        return [results[slot] for slot in sorted(results)]


@contextmanager
def _faults_told(folder: Path) -> Iterator[None]:
    """Raises an InputError that says in a line why the storage cannot be used."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise InputError(f"{folder / STUDY} cannot be read or written: {reason}.") from error


@contextmanager
def _opened(spec: SweepSpec, folder: Path, *, belongs: Mapping[str, Any]) -> Iterator[Study]:
    """Opens or creates the study of a folder and checks that it belongs to this sweep."""
    path = folder / STUDY
    with locked(folder / LOCK):
        if not path.exists():
            with replacing(path) as partial, _storage(partial) as storage:
                study = optuna.create_study(
                    study_name=spec.name, storage=storage, direction="maximize"
                )
                study.set_user_attr(_BELONGS, belongs)
                _queue(study, spec)
    _check_is_storage(path)
    with _storage(path) as storage:
        names = optuna.get_all_study_names(storage)
        if names != [spec.name]:
            given = ", ".join(map(repr, names)) or "no study"
            raise InputError(
                f"{path} belongs to another study: it holds {given}, the sweep is {spec.name!r}. "
                "Give another --output."
            )
        study = optuna.load_study(study_name=spec.name, storage=storage)
        stored = study.user_attrs.get(_BELONGS)
        # One made before files of sources were kept lacks their revisions.
        known = stored.get("data", {}) if stored else {}
        data = {file: one for file, one in belongs["data"].items() if file in known}
        belongs = {**belongs, "data": data}
        if stored != belongs:
            changed = ", ".join(_differences(stored, belongs)) or "all of it"
            raise InputError(
                f"{path} belongs to another study: it was made with other values of: {changed}. "
                "Run the sweep it was made by, or give another --output."
            )
        yield study


@contextmanager
def _storage(path: Path) -> Iterator[RDBStorage]:
    with _no_experimental_warnings():
        storage = RDBStorage(
            f"sqlite:///{quote(str(path))}",
            engine_kwargs={"connect_args": {"timeout": 60}},
            heartbeat_interval=HEARTBEAT,
            grace_period=GRACE,
        )
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def _no_experimental_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _check_is_storage(path: Path) -> None:
    """Looks before Optuna does, which would add its tables to any database."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("SELECT study_name FROM studies").fetchall()
    except sqlite3.Error as error:
        raise InputError(
            f"{path} is not the Optuna storage of a sweep ({error}). Give another --output."
        ) from error


def _differences(one: object, other: object, prefix: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, Mapping):
        for key in {**one, **other}:
            yield from _differences(one.get(key), other.get(key), f"{prefix}.{key}")
    elif one != other:
        yield prefix.removeprefix(".").removeprefix("search.") or "the sweep"


def _queue(study: Study, spec: SweepSpec) -> None:
    """Queues every slot that no trial fills: all at first, later those of dead processes."""
    with _no_experimental_warnings():
        optuna.storages.fail_stale_trials(study)
    late = datetime.now() - timedelta(seconds=GRACE)
    filled, tried = set(), {}
    for trial in study.get_trials(deepcopy=False):
        slot = trial.user_attrs.get(_SLOT)
        unclaimed = trial.state == TrialState.RUNNING and _CLAIMED not in trial.user_attrs
        if unclaimed and trial.datetime_start and trial.datetime_start < late:
            study.tell(trial.number, state=TrialState.FAIL)  # killed before its first heartbeat
        elif trial.state != TrialState.FAIL:
            filled.add(slot)
            continue
        tried[slot] = trial.params
    if len(filled - {None}) >= spec.trials:
        return
    planned = spec.planned()
    for slot in range(spec.trials):
        if slot not in filled:
            fixed = {} if planned is None else _stored(planned[slot], spec.space)
            study.enqueue_trial({**fixed, **tried.get(slot, {})}, user_attrs={_SLOT: slot})


def _sampler(spec: SweepSpec, number: int) -> BaseSampler:
    """A sampler whose draws depend on the seed and the trial, not on which process runs it."""
    seed = (spec.seed * 1_000_003 + number) % 2**32
    samplers = optuna.samplers  # any but 'tpe' is asked for nothing: every value is planned
    kind = samplers.TPESampler if spec.sampler == "tpe" else samplers.RandomSampler
    return kind(seed=seed)


def _run_one(
    study: Study, spec: SweepSpec, run: Callable[[Point], Mapping[str, Any]], *, lock: Path
) -> None:
    """Takes the next waiting slot and runs it under heartbeats."""
    # SQLite locks no row, so two processes could take one slot: the lock is held until it is taken.
    lost = False
    held = ExitStack()

    def objective(trial: Trial) -> float:
        nonlocal lost
        held.close()
        if _SLOT not in trial.user_attrs:
            raise _NoSlotLeft
        point = _suggested(trial, spec.space)
        trial.set_user_attr(_CLAIMED, True)
        _LOGGER.info(
            "trial %d of %d: %s", trial.user_attrs[_SLOT] + 1, spec.trials, point_text(point)
        )
        try:
            result = {"parameters": point, **run(point)}
        except ModelError as error:
            result = {"parameters": point, "spearman": None, "error": str(error)}
        try:
            trial.set_user_attr(_RESULT, result)
        except optuna.exceptions.UpdateFinishedTrialError:
            lost = True
            raise
        if result["spearman"] is None:
            raise optuna.TrialPruned
        return float(result["spearman"])

    try:
        with held:
            held.enter_context(locked(lock))
            study.optimize(objective, n_trials=1, catch=(_NoSlotLeft,))
    except ValueError:
        # This process was held up for so long that another took the slot back, and reads the
        # result from the run folder: Optuna says "Cannot tell a FAIL trial".
        if not lost:
            raise


def _suggested(trial: Trial, space: Mapping[str, Parameter]) -> Point:
    point: Point = {}
    for key, parameter in space.items():
        if isinstance(parameter, Values):
            label = trial.suggest_categorical(key, parameter.labels)
            point[key] = parameter.ends[parameter.labels.index(label)]
        elif parameter.kind == "integer":
            point[key] = trial.suggest_int(key, int(parameter.low), int(parameter.high))
        else:
            log = parameter.kind == "log_uniform"
            point[key] = parameter.rounded(
                trial.suggest_float(key, parameter.low, parameter.high, log=log)
            )
    return point


def _stored(point: Point, space: Mapping[str, Parameter]) -> dict[str, Any]:
    """A point as Optuna stores it: the label of each listed value."""
    return {
        key: value_text(point[key]) if isinstance(parameter, Values) else point[key]
        for key, parameter in space.items()
    }
