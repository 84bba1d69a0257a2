"""Prompts answered by a server, against the same ``openai`` client in a user's own loop."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

from benchmarks.machine import usable_cores, version_of
from benchmarks.memory import BAR as MEMORY_BAR, peak_memory
from benchmarks.peers.plain_prompting import answer_all
from benchmarks.result import Result
from benchmarks.rows import generated_rows
from condsim_llm.backend import MAX_NEW_TOKENS, PromptSettings
from condsim_llm.prompt import Example, render
from condsim_llm.server import ServerBackend

__all__ = ["BAR", "answer_rows", "run", "speed"]

_CONCURRENCY = 32
_DELAY_S = 0.05
_IDEAL = _CONCURRENCY / _DELAY_S
_REPEATS = 3
_MODEL = "tiny-chat"
_SHOTS = 4
_SERVER = Path(__file__).resolve().parents[1] / "packages" / "condsim-llm" / "tests" / "loopback.py"

BAR = 500 / _IDEAL
"""500 rows per second, as a share of the 640 that a client without any cost of its own reaches."""

Side = Callable[[Sequence[str]], Sequence[str]]


def run(*, quick: bool) -> list[Result]:
    """Ask a server on this machine that takes 50 ms for each answer; then one that takes no time.

    Args:
        quick: Whether to ask little: 640 rows, and 2,000 and 4,000 rows for the memory.

    Returns:
        Rows per second against the peer and against the ideal; peak memory of few and many rows.
    """
    return [
        *speed(640 if quick else 3200),
        _memory((2_000, 4_000) if quick else (10_000, 100_000)),
    ]


def answer_rows(base_url: str, rows: int) -> int:
    """Ask a server without keeping the answers.

    Args:
        base_url: Address of the server.
        rows: How many prompts to send.

    Returns:
        Number of answers.
    """
    backend = _backend(base_url)
    return sum(1 for _ in backend.answers(islice(cycle(_prompts(200)), rows)))


def speed(rows: int) -> list[Result]:
    """Ask a server that takes 50 ms for each answer, both sides in turns.

    Args:
        rows: How many prompts each side sends at a time.

    Returns:
        Our rows per second against the peer's, and against the ideal.

    Raises:
        RuntimeError: If the sides are given different answers.
    """
    prompts = _prompts(rows)
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    costs: dict[str, list[float]] = {"ours": [], "theirs": []}
    with _server("--delay", str(_DELAY_S)) as url:
        sides: dict[str, Side] = {"ours": _ours(url), "theirs": _theirs(url)}
        # Libraries are loaded.
        texts = {name: side(prompts[:64]) for name, side in sides.items()}
        for _ in range(_REPEATS):
            for name, side in sides.items():
                start, used = time.perf_counter(), time.process_time()
                texts[name] = side(prompts)
                rates[name].append(rows / (time.perf_counter() - start))
                costs[name].append(1000 * (time.process_time() - used) / rows)
    if texts["ours"] != texts["theirs"]:
        raise RuntimeError("The two sides were given different answers.")
    ours, theirs = (statistics.median(rates[name]) for name in ("ours", "theirs"))
    cost, their_cost = (statistics.median(costs[name]) for name in ("ours", "theirs"))
    measured = f"{rows:,} rows, {1000 * _DELAY_S:.0f} ms an answer, {_CONCURRENCY} at once"
    note = (
        f"medians of {_REPEATS}, in turns, fastest {max(rates['ours']):.0f} and "
        f"{max(rates['theirs']):.0f} rows/s; the client takes {cost:.2f} s of processor time for "
        f"1,000 rows, the peer {their_cost:.2f} s; cores, with the server on them: {usable_cores()}"
    )
    return [
        _result(measured, f"{version_of('openai')} (gather)", ours, theirs, None, note),
        _result(measured, "ideal: no cost but the wait", ours, _IDEAL, BAR, "1x cannot be passed"),
    ]


def _result(
    measured: str, peer: str, ours: float, theirs: float, bar: float | None, note: str
) -> Result:
    return Result(
        benchmark="prompt_http",
        measured=measured,
        peer=peer,
        unit="rows/s",
        ours=ours,
        theirs=theirs,
        ratio=ours / theirs,
        bar=bar,
        notes=(note,),
    )


def _memory(lengths: tuple[int, int]) -> Result:
    """Peak memory of a process that asks few rows and of one that asks many."""
    command = [sys.executable, "-m", "benchmarks.prompt_http"]
    with _server() as url:
        few, many = (peak_memory([*command, url, str(rows)]) for rows in lengths)
    return Result(
        benchmark="prompt_http",
        measured=f"peak memory, {lengths[1]:,} rows",
        peer=f"condsim, {lengths[0]:,} rows",
        unit="MiB",
        ours=many,
        theirs=few,
        ratio=few / many,
        bar=MEMORY_BAR,
        notes=("1x means that memory does not grow with the rows",),
    )


def _backend(url: str) -> ServerBackend:
    return ServerBackend(
        PromptSettings(model=_MODEL, backend="server", base_url=url, concurrency=_CONCURRENCY)
    )


def _ours(url: str) -> Side:
    def answer(prompts: Sequence[str]) -> list[str]:
        found = dict(_backend(url).answers(prompts))
        return [found[place].text for place in range(len(prompts))]

    return answer


def _theirs(url: str) -> Side:
    def answer(prompts: Sequence[str]) -> list[str]:
        return answer_all(
            prompts,
            base_url=url,
            model=_MODEL,
            concurrency=_CONCURRENCY,
            max_new_tokens=MAX_NEW_TOKENS,
        )

    return answer


def _prompts(number: int) -> list[str]:
    """Prompts with four examples."""
    rows = generated_rows(seed=0)
    examples = [Example(*row) for row in islice(rows, _SHOTS)]
    return [
        render(sentence1, sentence2, condition, instruction="", examples=examples)
        for sentence1, sentence2, condition, _ in islice(rows, number)
    ]


@contextmanager
def _server(*words: str) -> Iterator[str]:
    """The tests' server in a separate process; it ends when its standard input is closed."""
    command = [sys.executable, str(_SERVER), "--quiet", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    if answer_rows(sys.argv[1], int(sys.argv[2])) != int(sys.argv[2]):
        sys.exit("error: not every row was answered")
