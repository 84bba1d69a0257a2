"""A thread that keeps a bounded number of requests under way, for a caller that is not async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import islice
from queue import SimpleQueue

from condsim.errors import BackendError
from condsim.prompting.backends.base import Answer

__all__ = ["pumped"]

Ask = Callable[[str], Awaitable[Answer]]

_JOIN_S = 10.0


def pumped(
    prompts: Iterable[str],
    open_client: Callable[[], AbstractAsyncContextManager[Ask]],
    *,
    concurrency: int,
    patience_s: float,
) -> Generator[tuple[int, Answer], None, None]:
    """Answers prompts from an event loop in a thread of its own, so inside a running loop too.

    The prompts are read in the caller's thread, at most ``2 * concurrency`` ahead of the answers.
    When the generator is closed or fails, what is under way is cancelled and the thread joined.

    Args:
        prompts: The prompts.
        open_client: Opens what answers one prompt; opened and closed in the thread.
        concurrency: Requests under way at once, 1 or more.
        patience_s: Seconds for what is under way when one request has failed for good.

    Yields:
        The place of a prompt and its answer, in the order in which the answers arrive.

    Raises:
        BackendError: If a request fails for good, after the answers that were under way then.
    """
    source = enumerate(prompts)
    ahead, waiting, ended = 2 * concurrency, 0, False
    low = ahead - max(1, concurrency // 2)  # filled up by several at once: each hand-over costs
    pump = _Pump(open_client, concurrency, patience_s)
    try:
        while True:
            if not ended and waiting <= low:
                some = list(islice(source, ahead - waiting))
                ended = len(some) < ahead - waiting
                waiting += len(some)
                pump.send(some, last=ended)
            arrived = pump.arrived.get()
            if arrived is None:
                return
            if isinstance(arrived, BaseException):
                raise arrived
            waiting -= 1
            yield arrived
    finally:
        pump.close()


class _Pump:
    """The thread, its event loop and the two queues that lead there and back."""

    def __init__(
        self,
        open_client: Callable[[], AbstractAsyncContextManager[Ask]],
        concurrency: int,
        patience_s: float,
    ) -> None:
        self.arrived: SimpleQueue[tuple[int, Answer] | BaseException | None] = SimpleQueue()
        self._open_client = open_client
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._waiting: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._stopped = False
        self._closed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="condsim-server", daemon=True)
        self._thread.start()

    def send(self, prompts: list[tuple[int, str]], *, last: bool) -> None:
        """Hands prompts over; after the ``last`` ones the thread says when all are answered."""
        self._loop.call_soon_threadsafe(self._take, prompts, last)

    def close(self) -> None:
        """Cancels what is under way and waits for the thread."""
        self._loop.call_soon_threadsafe(self._leave)
        self._thread.join(_JOIN_S)

    def _turn(self) -> None:
        """The thread: runs the loop until the caller closes it."""
        try:
            self._loop.run_until_complete(self._run())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        """Answers what comes, then waits for the caller to close: the loop outlives its use."""
        try:
            async with self._open_client() as ask:
                failed = await self._answer(ask)
            self.arrived.put(failed)
        except Exception as error:  # whatever it is: the caller's thread raises it
            self.arrived.put(error)
        await self._closed.wait()

    async def _answer(self, ask: Ask) -> BaseException | None:
        """Lets the workers answer; returns why they stopped early, if they did."""
        if self._closed.is_set():
            return None
        self._workers = [asyncio.create_task(self._work(ask)) for _ in range(self._concurrency)]
        done, under_way = await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        failures = (task.exception() for task in done if not task.cancelled())
        failed = next((failure for failure in failures if failure is not None), None)
        if under_way:
            patience_s = self._patience_s if isinstance(failed, BackendError) else 0.0
            await asyncio.wait(under_way, timeout=patience_s)
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        return failed

    async def _work(self, ask: Ask) -> None:
        """Answers one prompt after another."""
        while (taken := await self._waiting.get()) is not None:
            place, prompt = taken
            try:
                answer = await ask(prompt)
            except BackendError as error:
                self._stop()  # at once: no other worker may take a prompt now
                error.place = place
                raise
            except Exception:
                self._stop()
                raise
            self.arrived.put((place, answer))

    def _leave(self) -> None:
        """Cancels what is under way, in the thread; the client is left to close by itself."""
        self._stopped = True
        self._closed.set()
        for task in self._workers:
            task.cancel()

    def _take(self, prompts: list[tuple[int, str]], last: bool) -> None:
        """Queues prompts, in the thread."""
        if self._stopped:
            return
        for prompt in prompts:
            self._waiting.put_nowait(prompt)
        if last:
            self._dismiss()

    def _stop(self) -> None:
        """Drops the prompts that were not sent."""
        self._stopped = True
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._dismiss()

    def _dismiss(self) -> None:
        """Tells every worker that no prompt comes after those in the queue."""
        for _ in range(self._concurrency):
            self._waiting.put_nowait(None)
