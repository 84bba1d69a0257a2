"""Callers with one pair each, against sentence-transformers in a plain FastAPI app."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import condsim
from benchmarks.machine import usable_cores, version_of
from benchmarks.result import Result

__all__ = ["BAR", "run"]

BAR = 4.0
_CALLERS = 64
_MANY = 1000
_PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Load:
    """Responses that callers got.

    Attributes:
        rate: Answers with a score in a second.
        p99: Seconds within which 99 of 100 of them came.
        statuses: Answers by HTTP status, or by the error of a connection.
    """

    rate: float
    p99: float
    statuses: dict[str, int]


def run(peer: Path, data: Path, *, quick: bool) -> list[Result]:
    """Let callers ask each server in turn, then 1,000 at once ask condsim.

    Args:
        peer: The peer's model.
        data: Not used; the callers make their texts.
        quick: Whether the callers ask for 3 seconds rather than 20, and for 60 in the end.

    Returns:
        Requests a second, the 99th percentile, and the memory under 1,000 callers.

    Raises:
        RuntimeError: If a server does not start.
    """
    duration = 3.0 if quick else 20.0
    scorer = condsim.load()
    ours = [sys.executable, "-m", "condsim", "serve", "--port", "0"]
    theirs = [sys.executable, str(_PEERS / "plain_server.py"), str(peer), scorer.order]
    loads: list[Load] = []
    for command in (ours, theirs):
        with _server(command) as (url, _):
            _ask(url, _CALLERS, 2.0)
            loads.append(_ask(url, _CALLERS, duration))
    name = f"FastAPI and {version_of('sentence-transformers')}"
    note = (
        f"{_CALLERS} callers in one process beside the server, for {duration:g} s; cores: "
        f"{usable_cores()}; statuses {loads[0].statuses} and {loads[1].statuses}"
    )
    return [
        _result("requests a second", name, "1/s", loads[0].rate, loads[1].rate, note=note),
        _result("99th percentile", name, "s", loads[0].p99, loads[1].p99, lower=True, bar=1.0),
        _many(ours, duration=5.0 if quick else 60.0),
    ]


def _result(
    measured: str,
    peer: str,
    unit: str,
    ours: float,
    theirs: float,
    *,
    note: str = "",
    lower: bool = False,
    bar: float = BAR,
) -> Result:
    return Result(
        benchmark="serve",
        measured=f"{measured}, {_CALLERS} callers",
        peer=peer,
        unit=unit,
        ours=ours,
        theirs=theirs,
        ratio=theirs / ours if lower else ours / theirs,
        bar=bar,
        notes=(note,) if note else (),
    )


def _many(command: Sequence[str], *, duration: float) -> Result:
    """1,000 callers at once: only 200 and 429, and memory that comes back."""
    with _server(command) as (url, process):
        _ask(url, _CALLERS, 2.0)
        before = _megabytes(process)
        callers = _start(url, _MANY, duration)
        time.sleep(duration / 2)
        during = _megabytes(process)
        load = _load(callers)
        after = _megabytes(process)
    errors = {one: n for one, n in load.statuses.items() if one not in ("200", "429")}
    note = (
        f"{load.statuses}, errors: {errors or 'none'}; {load.rate:.0f} requests/s, p99 "
        f"{load.p99:.2f} s; memory {before:.0f} MB before, {during:.0f} MB during, {after:.0f} MB "
        f"after {duration:g} s"
    )
    return Result(
        benchmark="serve",
        measured=f"memory, {_MANY:,} callers",
        peer="before the callers, and a half more",
        unit="MB",
        ours=after,
        theirs=1.5 * before,
        ratio=0.0 if errors else 1.5 * before / after,
        bar=1.0,
        notes=(note,),
    )


def _megabytes(process: subprocess.Popen[bytes]) -> float:
    """Memory that a process has now; NaN where the system does not say."""
    status = Path(f"/proc/{process.pid}/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.is_file() else []
    found = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(next(found, "0")) / 1024 or float("nan")


@contextmanager
def _server(command: Sequence[str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a server that prints its address."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as log:
        said = ""
        with (
            Path(log.name).open("w", encoding="utf-8") as stream,
            subprocess.Popen(command, stdout=stream, stderr=stream) as process,
        ):
            try:
                while not (" at http://" in said and "\n" in said):
                    if process.poll() is not None:
                        raise RuntimeError(f"The server did not start: {said}")
                    time.sleep(0.05)
                    said = Path(log.name).read_text(encoding="utf-8")
                yield said.split(" at ")[1].split()[0], process
            finally:
                process.terminate()


def _start(url: str, callers: int, duration: float) -> subprocess.Popen[bytes]:
    words = [sys.executable, str(_PEERS / "callers.py"), url, str(callers), str(duration)]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def _ask(url: str, callers: int, duration: float) -> Load:
    return _load(_start(url, callers, duration))


def _load(callers: subprocess.Popen[bytes]) -> Load:
    found = json.loads(callers.communicate()[0])
    seconds = found["seconds"]
    p99 = float(np.quantile(seconds, 0.99)) if seconds else float("inf")
    return Load(len(seconds) / found["took"], p99, found["statuses"])
