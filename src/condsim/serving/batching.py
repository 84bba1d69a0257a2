"""Dynamic batching: requests of several callers become one call of the model."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.model.base import PairScorer, Rows, Scale
from condsim.model.embedding import EmbeddingScorer
from condsim.model.legibility import collect_unread
from condsim.serving.errors import RequestError
from condsim.serving.middleware import ServerMetrics, ServingSettings
from condsim.types import FloatArray

Work = Callable[..., NDArray[Any]]
"""Takes columns of n texts each, returns an array with n rows."""

# A row whose texts are longer counts as several.
_CHARACTERS_PER_ROW = 512
# Weight of the last batch in the average seconds per row.
_PACE_WEIGHT = 0.2


@dataclass(eq=False)
class _Job:
    """The rows of one caller, and the progress on them."""

    work: Work
    columns: tuple[Sequence[str], ...]
    future: asyncio.Future[NDArray[Any]]
    costs: list[int]
    arrived: float = field(default_factory=time.monotonic)
    start: int = 0
    results: list[NDArray[Any]] = field(default_factory=list)

    @property
    def remaining_cost(self) -> int:
        return sum(self.costs[self.start :])

    def take(self, room: int) -> slice:
        """Take the next rows that fit, at least one."""
        stop = self.start + 1
        room -= self.costs[self.start]
        while stop < len(self.costs) and room >= self.costs[stop]:
            room -= self.costs[stop]
            stop += 1
        rows = slice(self.start, stop)
        self.start = stop
        return rows


_Part = tuple[_Job, slice]
_Result = tuple[_Job, NDArray[Any] | Exception]


class Batcher:
    """Runner of submitted work on one thread, in batches and in turns.

    A request that is longer than a batch goes to the end of the queue after each part of it, so
    that short ones do not wait until it is done.

    Attributes:
        queued: Number of rows that wait.
    """

    def __init__(self, settings: ServingSettings, *, metrics: ServerMetrics) -> None:
        self.settings = settings
        self.queued = 0
        self._metrics = metrics
        metrics.queue_rows.set_function(lambda: self.queued)
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._seconds_per_row = 0.0
        self._thread = threading.Thread(target=self._run, name="condsim-batches", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    @property
    def running(self) -> bool:
        """True if requests are accepted."""
        return self._thread.is_alive() and not self._stopping

    def start(self) -> None:
        """Start the thread; call it in the event loop whose tasks submit."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Accept no more, finish the accepted requests, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    async def submit(self, work: Work, *columns: Sequence[str]) -> NDArray[Any]:
        """Return the result of a call; requests with the same ``work`` are joined.

        Raises a RequestError: 429 if the queue is full, 503 if the server stops or the time is up.
        """
        costs = []
        for texts in zip(*columns, strict=True):
            costs.append(1 + sum(map(len, texts)) // _CHARACTERS_PER_ROW)
        job = _Job(work, columns, asyncio.get_running_loop().create_future(), costs)
        with self._changed:
            self._check_room(job.remaining_cost)
            self._jobs.append(job)
            self.queued += job.remaining_cost
            if len(self._jobs) == 1 or self.queued >= self.settings.batch_rows:
                self._changed.notify()
        limit = self.settings.time_limit
        try:
            return await asyncio.wait_for(job.future, limit)
        except TimeoutError:
            raise RequestError(
                503,
                f"The answer took longer than {limit:g} s (--time-limit). Send fewer rows, or ask "
                "again later.",
                retry_after=1,
            ) from None

    def wait(self, work: Work, *columns: Sequence[str]) -> NDArray[Any]:
        """Do the same as `submit` on another thread than the event loop's."""
        self._check_room(0)
        return asyncio.run_coroutine_threadsafe(self.submit(work, *columns), self._loop).result()

    def _check_room(self, cost: int) -> None:
        if not self.running:
            raise RequestError(503, "The server is stopping; ask again later.", retry_after=1)
        # Reject now what would wait for more than half of the time limit, instead of timing out.
        pace, room, reason = self._seconds_per_row, self.settings.queue_rows, "--queue-rows"
        if pace and (rows_in_time := int(self.settings.time_limit / 2 / pace)) < room:
            room, reason = rows_in_time, "--time-limit, at the present speed"
        if self.queued and self.queued + cost > room:
            raise RequestError(
                429,
                f"The server is busy: {self.queued} rows wait, and {room} may ({reason}). Ask "
                "again later.",
                retry_after=max(1, math.ceil(self.queued * pace)),
            )

    # Answers name the texts that the model cannot read.
    @collect_unread(log=False)
    def _run(self) -> None:
        while parts := self._next_batch():
            start = time.monotonic()
            parts_of_work: dict[tuple[Work, int], list[_Part]] = {}
            for job, rows in parts:
                parts_of_work.setdefault((job.work, len(job.columns)), []).append((job, rows))
            for joined_parts in parts_of_work.values():
                self._compute(joined_parts)
            seconds = time.monotonic() - start
            cost = sum(sum(job.costs[rows]) for job, rows in parts)
            self._seconds_per_row += _PACE_WEIGHT * (seconds / cost - self._seconds_per_row)
            self._metrics.batch_rows.observe(sum(rows.stop - rows.start for _, rows in parts))

    def _next_batch(self) -> list[_Part]:
        """Wait for work; empty at the end."""
        with self._changed:
            while True:
                while not self._jobs:
                    if self._stopping:
                        return []
                    self._changed.wait()
                due = self._jobs[0].arrived + self.settings.batch_wait
                while self.queued < self.settings.batch_rows and not self._stopping:
                    if (seconds := due - time.monotonic()) <= 0:
                        break
                    self._changed.wait(seconds)
                if parts := self._take_batch():
                    return parts

    def _take_batch(self) -> list[_Part]:
        """Take a batch out of the queue, and drop requests that timed out."""
        parts: list[_Part] = []
        unfinished: list[_Job] = []
        room = self.settings.batch_rows
        while self._jobs and room > 0:
            job = self._jobs.popleft()
            if job.future.done():
                self.queued -= job.remaining_cost
                continue
            rows = job.take(room)
            cost = sum(job.costs[rows])
            room -= cost
            self.queued -= cost
            parts.append((job, rows))
            if job.start < len(job.costs):
                unfinished.append(job)
        self._jobs.extend(unfinished)
        return parts

    def _compute(self, parts: list[_Part]) -> None:
        """Call the model once for several requests; if that fails, once for each."""
        columns: list[list[str]] = [[] for _ in parts[0][0].columns]
        for job, rows in parts:
            for column, texts in zip(columns, job.columns, strict=True):
                column.extend(texts[rows])
        results: list[_Result] = []
        try:
            values = parts[0][0].work(*columns)
        except Exception as error:
            if len(parts) > 1:
                for part in parts:
                    self._compute([part])
                return
            results.append((parts[0][0], error))
        else:
            start = 0
            for job, rows in parts:
                stop = start + rows.stop - rows.start
                job.results.append(values[start:stop])
                start = stop
                if rows.stop == len(job.costs):
                    results.append((job, np.concatenate(job.results)))
        if results:
            self._loop.call_soon_threadsafe(_deliver, results)


def _deliver(results: list[_Result]) -> None:
    for job, result in results:
        if job.future.done():
            continue
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)


class QueuedScores(PairScorer):
    """A model that gives scores, for other threads than the event loop's."""

    def __init__(self, name: str, score_on: Mapping[str, Work], batcher: Batcher) -> None:
        self.name = name
        self._score_on, self._batcher = score_on, batcher

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        conditions = [] if rows.conditions is None else [rows.conditions]
        return self._batcher.wait(self._score_on[scale], *rows.sentences, *conditions)


class QueuedEmbeddings(EmbeddingScorer):
    """A model that gives embeddings, for other threads than the event loop's."""

    def __init__(self, scorer: EmbeddingScorer, batcher: Batcher) -> None:
        super().__init__(
            name=scorer.name,
            order=scorer.order,
            dimension=scorer.dimension,
            calibration=scorer.calibration,
        )
        self._batcher = batcher
        self._encode = scorer.encode
        self._legibility = scorer._legibility
        self.criteria = scorer.criteria

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        if isinstance(texts[0], str):
            return self._batcher.wait(self._encode, [str(text) for text in texts])
        first, second = ([text[side] for text in texts] for side in (0, 1))
        columns = (first, second) if self.order == "sentence-first" else (second, first)
        return self._batcher.wait(self._encode, *columns)
