"""Work on a Ray cluster: workers that each hold something, such as a model, on any machines."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from condsim.errors import CondSimError, InputError, require

_TRIES = 3  # of a call whose worker died


class RayWorkers:
    """Runs calls on the workers of a Ray cluster."""

    def __init__(
        self,
        *,
        address: str | None = None,  # "auto": that of this machine; None starts one
        workers: int | None = None,  # each holds the models; as many as fit by default
        cpus: float = 1,
        gpus: float = 0,  # of a worker; Ray hides them from one that asks for none
    ) -> None:
        """Checks the numbers and that Ray is installed; connects on first use."""
        require("ray", extra="ray")
        if (workers is not None and workers < 1) or cpus <= 0 or gpus < 0:
            raise InputError(
                "Ray needs 1 worker or more, each with cores above 0 and accelerators of at least "
                f"0. Got {workers}, {cpus:g} and {gpus:g}."
            )
        self._address, self._workers = address, workers
        self._each = {"num_cpus": cpus, "num_gpus": gpus}

    def check(self) -> None:
        """Connects to the cluster once, so that a mistake shows before long work."""
        with _connected(self._address) as ray:
            self._room(ray)

    def map(
        self,
        worker: type,  # a class with a method ``work`` that may be called twice with the same value
        arguments: Iterable[Any],
        calls: Iterable[Any],
        *,
        most: int | None,  # workers
        what: str,  # the error if one fails, with ``{}`` for the reason
    ) -> Iterator[Any]:
        """Gives each worker the next call when it has done one; if it dies, another takes it."""
        # Calls are read as workers become free; results come in any order.
        with _connected(self._address) as ray:
            count = self._room(ray) if most is None else min(most, self._room(ray))
            remote = ray.remote(max_restarts=-1, max_task_retries=_TRIES, **self._each)(worker)
            actors = [remote.remote(*arguments) for _ in range(count)]
            try:
                yield from _shared(ray, actors, iter(calls), what)
            finally:  # or they would hold their cores in a cluster that goes on
                for actor in actors:
                    ray.kill(actor)

    def _room(self, ray: Any) -> int:  # noqa: ANN401  (a module)
        """The number of workers."""
        there = ray.cluster_resources()
        names = {"num_cpus": "CPU", "num_gpus": "GPU"}
        fit = min(
            int(there.get(names[key], 0) // share) for key, share in self._each.items() if share
        )
        if fit < (self._workers or 1):
            raise InputError(
                f"The Ray cluster has room for {fit} workers of {self._each['num_cpus']:g} cores "
                f"and {self._each['num_gpus']:g} accelerators. Got {self._workers or 1} to start; "
                "ask for fewer or smaller ones."
            )
        return self._workers or fit


_PLACE = re.compile(r"(?:ray://)?([^:/]+):(\d{1,5})")
_CONNECT = 10  # seconds


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Connects to Ray; an existing connection stays."""
    ray = require("ray", extra="ray")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or Ray reports to its makers
    try:
        if address and (place := _PLACE.fullmatch(address)):  # Ray itself asks for minutes
            socket.create_connection((place[1], int(place[2])), timeout=_CONNECT).close()
        ray.init(
            address=address or "local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ValueError, RuntimeError, OSError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"Cannot connect to the Ray cluster {address or 'on this machine'}: {reason}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _shared(ray: Any, actors: list[Any], calls: Iterator[Any], what: str) -> Iterator[Any]:  # noqa: ANN401
    from ray.util import ActorPool

    pool: Any = ActorPool(actors)
    try:
        for call in islice(calls, len(actors)):
            pool.submit(lambda worker, value: worker.work.remote(value), call)
        while pool.has_next():
            yield pool.get_next_unordered()
            for call in islice(calls, 1):
                pool.submit(lambda worker, value: worker.work.remote(value), call)
    except ray.exceptions.RayError as error:
        raise InputError(what.format(_reason(error))) from error


def _reason(error: Exception) -> str:
    """Why a worker failed: the error it raised, or the last line of Ray's message."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, CondSimError):
        return str(cause)
    lines = [line.strip() for line in str(cause or error).splitlines() if line.strip()]
    return f"{lines[-1] if lines else type(error).__name__}."
