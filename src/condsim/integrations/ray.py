"""Work on a Ray cluster: workers that each hold a model, on any machines."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from condsim.errors import CondSimError, InputError, one_line, require
from condsim.loading import load_encoder
from condsim.types import FloatArray, IntArray

_RETRIES_PER_CALL = 3
_CONNECT_TIMEOUT_SECONDS = 10
_HOST_AND_PORT = re.compile(r"(?:ray://)?([^:/]+):(\d{1,5})")


class RayWorkers:
    """Run calls on the workers of a Ray cluster."""

    def __init__(
        self, *, address: str | None = None, workers: int | None = None, gpus: float = 0
    ) -> None:
        """Check that Ray is installed; connect on first use.

        Without an address, a cluster is started; ``"auto"`` is that of this machine. By default
        there are as many workers as fit, each with a core and ``gpus`` accelerators.
        """
        require("ray", extra="ray")
        self._address, self._workers, self._gpus = address, workers, gpus

    def check(self) -> None:
        """Connect to the cluster once, so that a mistake shows before long work."""
        with _connected(self._address) as ray:
            self._worker_count(ray)

    def map(
        self,
        worker: type,
        arguments: Iterable[Any],
        calls: Iterable[Any],
        *,
        max_workers: int | None,
        failure: str,
    ) -> Iterator[Any]:
        """Yield the results of calls, in any order; calls are read as workers become free.

        The method ``work`` of the class ``worker`` takes a call, again if its worker dies; its
        constructor takes ``arguments``. If a call fails, ``failure`` is the message, with ``{}``
        for the reason.
        """
        with _connected(self._address) as ray:
            from ray.util import ActorPool

            remote = ray.remote(
                max_restarts=-1, max_task_retries=_RETRIES_PER_CALL, num_cpus=1, num_gpus=self._gpus
            )(worker)
            count = self._worker_count(ray)
            if max_workers is not None:
                count = min(count, max_workers)
            actors = [remote.remote(*arguments) for _ in range(count)]
            pool: Any = ActorPool(actors)
            remaining = iter(calls)
            try:
                for call in islice(remaining, count):
                    pool.submit(_work, call)
                while pool.has_next():
                    yield pool.get_next_unordered()
                    for call in islice(remaining, 1):
                        pool.submit(_work, call)
            except ray.exceptions.RayError as error:
                raise InputError(failure.format(_failure_reason(error))) from error
            finally:
                # Otherwise they would hold their cores in a cluster that keeps running.
                for actor in actors:
                    ray.kill(actor)

    def _worker_count(self, ray: Any) -> int:  # noqa: ANN401  (a module)
        available = ray.cluster_resources()
        fit = int(available.get("CPU", 0))
        if self._gpus:
            fit = min(fit, int(available.get("GPU", 0) // self._gpus))
        if fit < (self._workers or 1):
            raise InputError(
                f"The Ray cluster has room for {fit} workers of 1 core and {self._gpus:g} "
                f"accelerators; got {self._workers or 1} to start. Ask for fewer or smaller ones."
            )
        return self._workers or fit


class RayEncoding(RayWorkers):
    """Encode texts for an index on a Ray cluster; this process reads and writes the index."""

    def __init__(
        self, model: str | None = None, *, address: str | None = None, workers: int | None = None
    ) -> None:
        """Connect on first use; the model has a name or folder that all machines know."""
        super().__init__(address=address, workers=workers)
        self._model = model

    def __call__(
        self, batches: Iterable[tuple[IntArray, list[str]]], condition: str
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield numbers and embeddings, ``(m, d)``, of batches of rows, in any order."""
        failure = "A worker failed: {} What was encoded stays; run the same command to continue."
        arguments = (self._model, condition)
        yield from self.map(_EncodingWorker, arguments, batches, max_workers=None, failure=failure)


class _EncodingWorker:
    """Hold the model."""

    def __init__(self, model: str | None, condition: str) -> None:
        self._scorer = load_encoder(model)
        self._condition = condition

    def work(self, batch: tuple[IntArray, list[str]]) -> tuple[IntArray, FloatArray]:
        numbers, texts = batch
        return numbers, self._scorer.encode(list(texts), self._condition)


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Connect to Ray; an existing connection stays."""
    ray = require("ray", extra="ray")
    if ray.is_initialized():
        yield ray
        return
    # Otherwise Ray reports its use over the network.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    message = f"Cannot connect to the Ray cluster {address or 'on this machine'}"
    with one_line(message, ValueError, RuntimeError, OSError, OverflowError):
        # Ray itself tries for minutes to reach an address where nothing listens.
        if match := _HOST_AND_PORT.fullmatch(address or ""):
            target = (match[1], int(match[2]))
            socket.create_connection(target, timeout=_CONNECT_TIMEOUT_SECONDS).close()
        ray.init(
            address=address or "local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    try:
        yield ray
    finally:
        ray.shutdown()


def _work(actor: Any, call: Any) -> Any:  # noqa: ANN401
    return actor.work.remote(call)


def _failure_reason(error: Exception) -> str:
    """Return the error that a worker raised, or the last line of Ray's message."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, CondSimError):
        return str(cause)
    lines = str(cause or error).strip().splitlines()
    return f"{lines[-1].strip() if lines else type(error).__name__}."
