"""The trials of a sweep in an Optuna study: handed out to processes, taken back from dead ones.

The study is one SQLite file. It gets all its trials when it is made, as waiting *slots*, so that no
two processes take the same one and none takes one too many. A process that trains sends a
heartbeat; the slot of one that was killed waits again, with the same values, a little after its
last beat.
"""

from __future__ import annotations

import logging
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from condsim.errors import InputError, ModelError, require
from condsim.files import replacing
from condsim.training.sweep.space import Parameter, Point, Values, point_text
from condsim.training.sweep.spec import SweepSpec

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial, Trial

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


@contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Keeps other processes out of the folder of a sweep."""
    lock = require("filelock", extra="train").FileLock(folder / LOCK)
    lock.acquire()
    try:
        yield lambda: lock.release(force=True)
    finally:
        lock.release(force=True)


def run_trials(
    spec: SweepSpec,
    folder: Path,
    run: Callable[[Point], Mapping[str, Any]],
    *,
    data: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Runs the trials of a sweep, as one of perhaps several processes, until all are done."""
    optuna = require("optuna", extra="train")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with _opened(optuna, spec, folder, belongs={"search": spec.search(), "data": data}) as study:
        announced = False
        while True:
            with locked(folder) as release:
                _refill(optuna, study, spec)
                waiting = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.WAITING])
                if waiting:
                    study.sampler = _sampler(optuna, spec, waiting[0].number)
                    _run_one(optuna, study, spec, run, claimed=release)
                    continue
            running = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING])
            if not running:
                break
            if not announced:
                _LOGGER.info("waiting for %d trials of other processes", len(running))
                announced = True
            time.sleep(POLL)
        settled = _settled(optuna, study)
        return [settled[slot].user_attrs[_RESULT] for slot in sorted(settled)]


@contextmanager
def _opened(
    optuna: ModuleType, spec: SweepSpec, folder: Path, *, belongs: Mapping[str, Any]
) -> Iterator[Study]:
    """Opens the study of a folder, makes it where there is none, and checks whose it is."""
    path = folder / STUDY
    with locked(folder):
        if not path.exists():
            with replacing(path) as partial:
                _make(optuna, spec, partial, belongs)
    _check_is_storage(path)
    with _storage(optuna, path) as storage:
        names = optuna.get_all_study_names(storage)
        if names != [spec.name]:
            given = ", ".join(map(repr, names)) or "no study"
            raise InputError(
                f"{path} belongs to another study: it holds {given}, the sweep is {spec.name!r}. "
                "Give another --output."
            )
        study = optuna.load_study(study_name=spec.name, storage=storage)
        _check_belongs(path, study.user_attrs.get(_BELONGS), belongs)
        yield study


def _make(optuna: ModuleType, spec: SweepSpec, path: Path, belongs: Mapping[str, Any]) -> None:
    with _storage(optuna, path) as storage:
        study = optuna.create_study(study_name=spec.name, storage=storage, direction="maximize")
        study.set_user_attr(_BELONGS, belongs)
        _refill(optuna, study, spec)


@contextmanager
def _storage(optuna: ModuleType, path: Path) -> Iterator[RDBStorage]:
    with _no_experimental_warnings(optuna):
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{path}",
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
def _no_experimental_warnings(optuna: ModuleType) -> Iterator[None]:
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


def _check_belongs(path: Path, stored: object, expected: Mapping[str, Any]) -> None:
    """Compares what a study was made for with what is about to be run."""
    if stored == expected:
        return
    changed = ", ".join(_differences(stored, expected)) or "all of it"
    raise InputError(
        f"{path} belongs to another study: it was made with other values of: {changed}. "
        "Run the sweep it was made by, or give another --output."
    )


def _differences(one: object, other: object, prefix: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, Mapping):
        for key in {**one, **other}:
            yield from _differences(one.get(key), other.get(key), f"{prefix}.{key}")
    elif one != other:
        yield prefix.removeprefix(".").removeprefix("search.") or "the sweep"


def _refill(optuna: ModuleType, study: Study, spec: SweepSpec) -> None:
    """Queues every slot that no trial fills: all at first, later those of dead processes."""
    with _no_experimental_warnings(optuna):
        optuna.storages.fail_stale_trials(study)
    failed = optuna.trial.TrialState.FAIL
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        if _CLAIMED not in trial.user_attrs:  # killed before its first heartbeat
            study.tell(trial.number, state=failed)
    filled, tried = set(), {}
    for trial in study.get_trials(deepcopy=False):
        if trial.state == failed:
            tried[trial.user_attrs.get(_SLOT)] = trial.params
        else:
            filled.add(trial.user_attrs.get(_SLOT))
    if len(filled) >= spec.trials:
        return
    planned = spec.planned()
    for slot in range(spec.trials):
        if slot not in filled:
            fixed = {} if planned is None else _stored(planned[slot], spec.space)
            study.enqueue_trial({**fixed, **tried.get(slot, {})}, user_attrs={_SLOT: slot})


def _settled(optuna: ModuleType, study: Study) -> dict[int, FrozenTrial]:
    """The trials with a result, or without one for good, by slot."""
    states = [optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED]
    trials = study.get_trials(deepcopy=False, states=states)
    return {trial.user_attrs[_SLOT]: trial for trial in trials if _SLOT in trial.user_attrs}


def _sampler(optuna: ModuleType, spec: SweepSpec, number: int) -> BaseSampler:
    """A sampler whose draws depend on the seed and the trial, not on which process runs it."""
    seed = (spec.seed * 1_000_003 + number) % 2**32
    samplers = optuna.samplers  # any but 'tpe' is asked for nothing: every value is planned
    kind = samplers.TPESampler if spec.sampler == "tpe" else samplers.RandomSampler
    sampler: BaseSampler = kind(seed=seed)
    return sampler


def _run_one(
    optuna: ModuleType,
    study: Study,
    spec: SweepSpec,
    run: Callable[[Point], Mapping[str, Any]],
    *,
    claimed: Callable[[], None],
) -> None:
    """Takes the next waiting slot, calls ``claimed``, and runs it under heartbeats."""
    lost = False

    def objective(trial: Trial) -> float:
        nonlocal lost
        point = _suggested(trial, spec.space)
        trial.set_user_attr(_CLAIMED, True)
        claimed()
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
        study.optimize(objective, n_trials=1)
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
            point[key] = parameter.values[parameter.labels.index(label)]
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
        key: parameter.labels[parameter.values.index(point[key])]
        if isinstance(parameter, Values)
        else point[key]
        for key, parameter in space.items()
    }
