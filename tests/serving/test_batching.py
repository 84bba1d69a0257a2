from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi")

from condsim.errors import InputError
from condsim.serving.batching import Batcher
from condsim.serving.errors import RequestError
from condsim.serving.middleware import ServerMetrics
from condsim.serving.settings import ServingSettings


class Lengths:
    """Gives the length of each text, and remembers the rows of each call."""

    def __init__(self):
        self.calls = []
        self.open = threading.Event()
        self.open.set()

    def __call__(self, texts):
        self.open.wait(10)
        self.calls.append(list(texts))
        if "bad" in texts:
            raise InputError("A bad text.")
        return np.array([len(text) for text in texts])


def run(work, callers, **limits):
    """Runs an async function with a started batcher."""

    async def main():
        batcher = Batcher(ServingSettings(**limits), metrics=ServerMetrics())
        batcher.start()
        try:
            return await callers(batcher)
        finally:
            work.open.set()
            await batcher.stop()

    return asyncio.run(main())


async def held(batcher, work):
    """Keeps the thread busy with one text; returns the task."""
    work.open.clear()
    task = asyncio.ensure_future(batcher.submit(work, ["first"]))
    await asyncio.sleep(0)
    while batcher.queued:
        await asyncio.sleep(0.001)
    return task


def test_callers_at_once_share_a_call_and_get_their_own_rows():
    work = Lengths()

    async def callers(batcher):
        first = await held(batcher, work)
        others = [asyncio.ensure_future(batcher.submit(work, ["a" * n, "b"])) for n in range(1, 9)]
        await asyncio.sleep(0.02)
        work.open.set()
        return await asyncio.gather(first, *others)

    results = run(work, callers)
    assert [result.tolist() for result in results[1:]] == [[n, 1] for n in range(1, 9)]
    assert [len(call) for call in work.calls] == [1, 16]


def test_long_request_goes_in_parts_and_lets_short_ones_pass():
    work = Lengths()

    async def callers(batcher):
        first = await held(batcher, work)
        done = []
        long = asyncio.ensure_future(batcher.submit(work, [f"{n:03}" for n in range(10)]))
        short = asyncio.ensure_future(batcher.submit(work, ["short"]))
        long.add_done_callback(lambda _: done.append("long"))
        short.add_done_callback(lambda _: done.append("short"))
        await asyncio.sleep(0.02)
        work.open.set()
        await asyncio.gather(first, long, short)
        return done, long.result()

    done, result = run(work, callers, batch_rows=4)
    assert done == ["short", "long"]
    assert result.tolist() == [3] * 10
    # 4 of the long one; the short one and 3 more; the last 3.
    assert [len(call) for call in work.calls] == [1, 4, 4, 3]


def test_long_texts_count_as_several_rows():
    work = Lengths()
    texts = ["a" * 512, "b" * 512, "c"]  # 2 + 2 + 1 rows
    run(work, lambda batcher: batcher.submit(work, texts), batch_rows=3)
    assert [len(call) for call in work.calls] == [1, 2]


def test_error_of_one_caller_leaves_the_others_their_results():
    work = Lengths()

    async def callers(batcher):
        first = await held(batcher, work)
        tasks = [asyncio.ensure_future(batcher.submit(work, [text])) for text in ("x", "bad", "yy")]
        await asyncio.sleep(0.02)
        work.open.set()
        return await asyncio.gather(first, *tasks, return_exceptions=True)

    _, one, bad, two = run(work, callers)
    assert one.tolist() == [1]
    assert two.tolist() == [2]
    assert isinstance(bad, InputError)


def test_full_queue_is_429_with_the_time_to_wait():
    work = Lengths()

    async def callers(batcher):
        first = await held(batcher, work)
        waiting = asyncio.ensure_future(batcher.submit(work, ["a"] * 6))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match="6 rows wait, and 8 may") as caught:
            await batcher.submit(work, ["a"] * 3)
        work.open.set()
        await asyncio.gather(first, waiting)
        return caught.value

    error = run(work, callers, queue_rows=8)
    assert error.status_code == 429
    assert int(error.headers["Retry-After"]) >= 1


def test_queue_that_would_time_out_is_429():
    work = Lengths()

    async def callers(batcher):
        batcher._seconds_per_row = 0.5  # seconds a row: 8 rows in half of the time limit
        first = await held(batcher, work)
        waiting = asyncio.ensure_future(batcher.submit(work, ["a"] * 6))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match=r"6 rows wait, and 8 may \(--time-limit") as caught:
            await batcher.submit(work, ["a"] * 3)
        work.open.set()
        await asyncio.gather(first, waiting)
        return caught.value

    error = run(work, callers, time_limit=8)
    assert (error.status_code, error.headers["Retry-After"]) == (429, "3")


def test_request_above_the_queue_is_taken_when_nothing_waits():
    work = Lengths()
    result = run(work, lambda batcher: batcher.submit(work, ["a"] * 20), queue_rows=8)
    assert len(result) == 20


def test_time_limit_is_503_and_what_timed_out_is_not_run():
    work = Lengths()

    async def callers(batcher):
        first = await held(batcher, work)
        with pytest.raises(RequestError, match="--time-limit") as caught:
            await batcher.submit(work, ["late"])
        work.open.set()
        with pytest.raises(RequestError):
            await first
        await batcher.submit(work, ["next"])
        return caught.value, batcher.queued

    error, queued = run(work, callers, time_limit=0.3)
    assert error.status_code == 503
    assert queued == 0
    assert ["late"] not in work.calls


def test_stop_finishes_what_was_taken_and_takes_no_more():
    work = Lengths()

    async def callers(batcher):
        first = await held(batcher, work)
        second = asyncio.ensure_future(batcher.submit(work, ["a"]))
        await asyncio.sleep(0.01)
        stopping = asyncio.ensure_future(batcher.stop())
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match="stopping"):
            await batcher.submit(work, ["late"])
        work.open.set()
        await stopping
        return await asyncio.gather(first, second)

    assert [one.tolist() for one in run(work, callers)] == [[5], [1]]
