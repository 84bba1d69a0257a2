"""The harvest on a Ray cluster: the same shards, written by workers on several machines."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from condsim.contexts.harvest.harvesting import Origin, drawer_of, write_shard
from condsim.contexts.harvest.stored import Harvest, one_line
from condsim.errors import CondSimError, InputError, require

_TRIES = 3  # of a shard whose worker died


class RayEngine:
    """Writes shards on a Ray cluster; the folder must be one that all machines share."""

    def __init__(
        self,
        *,
        address: str | None = None,
        workers: int | None = None,
        cpus: float = 1,
        gpus: float = 0,
    ) -> None:
        """Checks the numbers; connects on first use.

        Args:
            address: Address of the cluster (``"auto"``: the one this machine is part of); a local
                one is started if None.
            workers: Workers that each hold the models; as many as fit by default.
            gpus: Accelerators of a worker; Ray hides them from one that asks for none.

        Raises:
            MissingExtraError: If Ray is not installed.
            InputError: If a number is out of its range.
        """
        require("ray", extra="ray")
        if (workers is not None and workers < 1) or cpus <= 0 or gpus < 0:
            raise InputError(
                "Ray needs 1 worker or more, each with cores above 0 and accelerators of at least "
                f"0. Got {workers}, {cpus:g} and {gpus:g}."
            )
        self._address, self._workers = address, workers
        self._each = {"num_cpus": cpus, "num_gpus": gpus}

    def check(self) -> None:
        """Connects to the cluster once, so that a mistake shows before long work.

        Raises:
            InputError: If it cannot be reached or has no room for a worker.
        """
        with _connected(self._address) as ray:
            self._room(ray)

    def __call__(
        self, made: Harvest, opener: Callable[[], Origin], numbers: list[int]
    ) -> Iterator[int]:
        """Writes the shards of some numbers; if a worker dies, another writes its shard.

        Args:
            opener: Opens corpus, index and scorer in a worker.
            numbers: Numbers of the shards.

        Yields:
            Each number when its shard is written, in any order.
        """
        made = replace(made, folder=made.folder.resolve())  # workers have directories of their own
        with _connected(self._address) as ray:
            count = min(len(numbers), self._room(ray))
            worker = ray.remote(max_restarts=-1, max_task_retries=_TRIES, **self._each)(_Worker)
            actors = [worker.remote(made, opener) for _ in range(count)]
            try:
                yield from _shared(ray, actors, numbers)
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


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Connects to Ray; an existing connection stays."""
    ray = require("ray", extra="ray")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or Ray reports to its makers
    try:
        ray.init(
            address=address or "local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise InputError(
            f"Cannot connect to the Ray cluster {address or 'on this machine'}: {one_line(error)}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _shared(ray: Any, actors: list[Any], numbers: list[int]) -> Iterator[int]:  # noqa: ANN401
    """Gives each worker the next shard when it has finished one."""
    from ray.util import ActorPool

    pool = ActorPool(actors)
    try:
        yield from pool.map_unordered(lambda worker, number: worker.write.remote(number), numbers)
    except ray.exceptions.RayError as error:
        raise InputError(
            f"A worker of the harvest failed: {_reason(error)} Shards that are written stay; run "
            "the same command again for the rest."
        ) from error


def _reason(error: Exception) -> str:
    """Why a worker failed: the error it raised, or the last line of Ray's message."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, CondSimError):
        return str(cause)
    lines = [line.strip() for line in str(cause or error).splitlines() if line.strip()]
    return f"{lines[-1] if lines else type(error).__name__}."


class _Worker:
    """Holds the models and writes shards."""

    def __init__(self, made: Harvest, opener: Callable[[], Origin]) -> None:
        self._made = made
        self._origin = opener()
        self._drawer = drawer_of(self._origin, made.settings)

    def write(self, number: int) -> int:
        """Writes a shard, unless it is there already: a call may come twice after a failure."""
        if number in self._made.missing([number]):
            write_shard(self._made, self._origin, self._drawer, number)
        return number
