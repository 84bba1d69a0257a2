from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi")

from condsim.errors import InputError
from condsim.serving.batching import Batcher
from condsim.serving.errors import RequestError
from condsim.serving.middleware import ServerMetrics, ServingSettings


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


def together(work, *requests, **limits):
    """Results, or errors, of requests that come while the thread is busy."""

    async def callers(batcher):
        first = await held(batcher, work)
        tasks = [asyncio.ensure_future(batcher.submit(work, texts)) for texts in requests]
        await asyncio.sleep(0.02)
        work.open.set()
        return await asyncio.gather(first, *tasks, return_exceptions=True)

    return run(work, callers, **limits)[1:]


def test_callers_at_once_share_a_call_and_get_their_own_rows():
    work = Lengths()
    results = together(work, *(["a" * n, "b"] for n in range(1, 9)))
    assert [result.tolist() for result in results] == [[n, 1] for n in range(1, 9)]
    assert [len(call) for call in work.calls] == [1, 16]


def test_long_request_goes_in_parts_and_lets_short_ones_pass():
    work = Lengths()
    result, _ = together(work, [f"{n:03}" for n in range(10)], ["short"], batch_rows=4)
    assert result.tolist() == [3] * 10
    # 4 of the long one; the short one and 3 more; the last 3.
    assert [len(call) for call in work.calls] == [1, 4, 4, 3]
    assert "short" in work.calls[2]


def test_long_texts_count_as_several_rows():
    work = Lengths()
    texts = ["a" * 512, "b" * 512, "c"]  # 2 + 2 + 1 rows
    run(work, lambda batcher: batcher.submit(work, texts), batch_rows=3)
    assert [len(call) for call in work.calls] == [1, 2]


def test_error_of_one_caller_leaves_the_others_their_results():
    one, bad, two = together(Lengths(), ["x"], ["bad"], ["yy"])
    assert (one.tolist(), two.tolist()) == ([1], [2])
    assert isinstance(bad, InputError)


@pytest.mark.parametrize(
    ("limits", "seconds_per_row", "message", "wait"),
    [
        ({"queue_rows": 8}, None, "6 rows wait, and 8 may", None),
        # 8 rows in half of the time limit.
        ({"time_limit": 8}, 0.5, r"6 rows wait, and 8 may \(--time-limit", "3"),
    ],
)
def test_full_queue_is_429_with_the_time_to_wait(limits, seconds_per_row, message, wait):
    work = Lengths()

    async def callers(batcher):
        if seconds_per_row is not None:
            batcher._seconds_per_row = seconds_per_row
        first = await held(batcher, work)
        waiting = asyncio.ensure_future(batcher.submit(work, ["a"] * 6))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match=message) as caught:
            await batcher.submit(work, ["a"] * 3)
        work.open.set()
        await asyncio.gather(first, waiting)
        return caught.value

    error = run(work, callers, **limits)
    assert error.status_code == 429
    assert int(error.headers["Retry-After"]) >= 1
    assert wait in (None, error.headers["Retry-After"])


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
