"""Dynamic batching: what several callers ask for at once is one call of the model."""

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
from condsim.serving.errors import RequestError
from condsim.serving.metrics import Metrics
from condsim.serving.settings import ServingSettings
from condsim.types import FloatArray

Work = Callable[..., NDArray[Any]]
"""Takes columns of n texts each, gives an array with n rows."""
Columns = tuple[Sequence[str], ...]

_CHARACTERS = 512  # of the texts of a row; one that has more counts as several


@dataclass(eq=False)
class _Job:
    """What one caller wants, and how far it is."""

    work: Work
    columns: Columns
    future: asyncio.Future[NDArray[Any]]
    costs: list[int]
    arrived: float = field(default_factory=time.monotonic)
    start: int = 0
    parts: list[NDArray[Any]] = field(default_factory=list)

    def part(self, room: int) -> slice:
        """The next rows that fit, one at least."""
        stop = self.start + 1
        room -= self.costs[self.start]
        while stop < len(self.costs) and room >= self.costs[stop]:
            room -= self.costs[stop]
            stop += 1
        rows = slice(self.start, stop)
        self.start = stop
        return rows


_Part = tuple[_Job, slice]


class Batcher:
    """Runs what is submitted on one thread, in batches and in turns."""

    # A request that is longer than a batch goes to the end of the queue after each part of it, so
    # that short ones do not wait until it is done.

    def __init__(self, settings: ServingSettings, *, metrics: Metrics) -> None:
        self.settings = settings
        self.queued = 0
        """Rows that wait."""
        self._metrics = metrics
        metrics.queue.set_function(lambda: self.queued)
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._pace = 0.0  # seconds a row, of late
        self._thread = threading.Thread(target=self._run, name="condsim-batches", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def running(self) -> bool:
        """Whether requests are taken."""
        return self._thread.is_alive() and not self._stopping

    def start(self) -> None:
        """Starts the thread; call it in the event loop whose tasks submit."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Takes no more, finishes what was taken, and ends the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    async def submit(self, work: Work, *columns: Sequence[str]) -> NDArray[Any]:
        """Waits for what a call gives or raises; requests with the same ``work`` are joined."""
        # RequestError: 429 if the queue is full, 503 if the server stops or the time is over.
        costs = [
            1 + sum(map(len, texts)) // _CHARACTERS for texts in zip(*columns, strict=True)
        ]  # (n,)
        cost = sum(costs)
        job = _Job(work, columns, asyncio.get_running_loop().create_future(), costs)
        with self._changed:
            if not self.running:
                raise RequestError(503, "The server is stopping; ask again later.", retry_after=1)
            # What would wait past half of the time limit is refused now, not timed out later.
            pace, most = self._pace, self.settings.queue_rows
            room = most if pace == 0 else min(most, int(self.settings.time_limit / 2 / pace))
            if self.queued and self.queued + cost > room:
                why = "--queue-rows" if room == most else "--time-limit, at the speed of late"
                raise RequestError(
                    429,
                    f"The server is busy: {self.queued} rows wait, and {room} may ({why}). Ask "
                    "again later.",
                    retry_after=max(1, math.ceil(self.queued * pace)),
                )
            self._jobs.append(job)
            self.queued += cost
            if len(self._jobs) == 1 or self.queued >= self.settings.batch_rows:
                self._changed.notify()
        try:
            return await asyncio.wait_for(job.future, self.settings.time_limit)
        except TimeoutError:
            raise RequestError(
                503,
                f"The answer took longer than {self.settings.time_limit:g} s (--time-limit). Send "
                "fewer rows, or ask again later.",
                retry_after=1,
            ) from None

    def wait(self, work: Work, *columns: Sequence[str]) -> NDArray[Any]:
        """Does the same as `submit` for a thread that is not that of the event loop."""
        if self._loop is None:
            raise RequestError(503, "The server is starting; ask again.", retry_after=1)
        return asyncio.run_coroutine_threadsafe(self.submit(work, *columns), self._loop).result()

    def _run(self) -> None:
        while parts := self._next_batch():
            began = time.monotonic()
            together: dict[tuple[Work, int], list[_Part]] = {}
            for part in parts:
                together.setdefault((part[0].work, len(part[0].columns)), []).append(part)
            for some in together.values():
                self._compute(some)
            rows = sum(rows.stop - rows.start for _, rows in parts)
            cost = sum(sum(job.costs[rows]) for job, rows in parts)
            seconds = time.monotonic() - began
            self._pace += 0.2 * (seconds / cost - self._pace)
            self._metrics.rows.observe(rows)
            self._metrics.took.observe(seconds)

    def _next_batch(self) -> list[_Part]:
        """Waits for work; nothing at the end."""
        with self._changed:
            while True:
                while not self._jobs:
                    if self._stopping:
                        return []
                    self._changed.wait()
                due = self._jobs[0].arrived + self.settings.batch_wait
                while self.queued < self.settings.batch_rows and not self._stopping:
                    if (left := due - time.monotonic()) <= 0:
                        break
                    self._changed.wait(left)
                if parts := self._taken():
                    return parts

    def _taken(self) -> list[_Part]:
        """Takes a batch out of the queue; nobody waits any more for what timed out."""
        parts: list[_Part] = []
        unfinished: list[_Job] = []
        room = self.settings.batch_rows
        while self._jobs and room > 0:
            job = self._jobs.popleft()
            if job.future.done():
                self.queued -= sum(job.costs[job.start :])
                continue
            rows = job.part(room)
            cost = sum(job.costs[rows])
            room -= cost
            self.queued -= cost
            parts.append((job, rows))
            if job.start < len(job.costs):
                unfinished.append(job)
        self._jobs.extend(unfinished)
        return parts

    def _compute(self, parts: list[_Part]) -> None:
        """Makes one call for several requests; if it fails, one for each, for others are good."""
        results: list[tuple[_Job, NDArray[Any] | Exception]] = []
        columns = [
            [text for job, rows in parts for text in job.columns[number][rows]]
            for number in range(len(parts[0][0].columns))
        ]
        try:
            found = parts[0][0].work(*columns)
        except Exception as error:
            if len(parts) > 1:
                for part in parts:
                    self._compute([part])
                return
            results.append((parts[0][0], error))
        else:
            begin = 0
            for job, rows in parts:
                end = begin + rows.stop - rows.start
                job.parts.append(found[begin:end])
                begin = end
                if rows.stop == len(job.costs):
                    whole = job.parts[0] if len(job.parts) == 1 else np.concatenate(job.parts)
                    results.append((job, whole))
        if self._loop is not None and results:
            self._loop.call_soon_threadsafe(_deliver, results)


def _deliver(results: list[tuple[_Job, NDArray[Any] | Exception]]) -> None:
    for job, result in results:
        if job.future.done():
            continue
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)


class QueuedScores(PairScorer):
    """A model that gives scores, for other threads than that of the event loop."""

    def __init__(self, name: str, on: Mapping[str, Work], batcher: Batcher) -> None:
        self.name = name
        self._on, self._batcher = on, batcher

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        conditions = [] if rows.conditions is None else [rows.conditions]
        return self._batcher.wait(self._on[scale], *rows.sentences, *conditions)


class QueuedEmbeddings(EmbeddingScorer):
    """A model that gives embeddings, for other threads than that of the event loop."""

    def __init__(self, scorer: EmbeddingScorer, batcher: Batcher) -> None:
        super().__init__(
            name=scorer.name,
            order=scorer.order,
            dimension=scorer.dimension,
            calibration=scorer.calibration,
        )
        self._batcher = batcher
        self._encode = scorer.encode

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        if isinstance(texts[0], str):
            return self._batcher.wait(self._encode, [str(text) for text in texts])
        first, second = ([text[side] for text in texts] for side in (0, 1))
        columns = (first, second) if self.order == "sentence-first" else (second, first)
        return self._batcher.wait(self._encode, *columns)
