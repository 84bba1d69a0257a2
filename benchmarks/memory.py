"""Memory of scoring a file, which the batch bounds and not the length of the file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from benchmarks.result import Result
from benchmarks.rows import generated_rows, write_rows

__all__ = ["BAR", "Cost", "cost_of", "memory_result", "peak_memory"]

BAR = 0.9

# A process begins with the peak of the one that started it, and this one holds torch; so a small
# one starts the command and reads the peak of its children.
_MEASURE = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""

Cost = tuple[float, float]
"""Seconds, and the most memory held at once in MiB."""


def memory_result(*, quick: bool) -> Result:
    """Compare the peak memory of ``condsim score`` on a file and on a longer one.

    Args:
        quick: Whether the files have 5,000 and 10,000 rows rather than 10,000 and 100,000.

    Returns:
        The ratio of the shorter file's peak to the longer one's: 1 if memory does not grow.

    Raises:
        subprocess.CalledProcessError: If scoring fails.
    """
    lengths = (5_000, 10_000) if quick else (10_000, 100_000)
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        file = Path(folder, "rows.csv")
        peaks = []
        for length in lengths:
            write_rows(file, islice(generated_rows(seed=1), length))
            words = ["score", "--file", str(file), "--output", str(Path(folder, "scored.csv"))]
            peaks.append(peak_memory([sys.executable, "-m", "condsim", *words]))
    return Result(
        benchmark="score_many",
        measured=f"peak memory, {lengths[1]:,} rows",
        peer=f"condsim, {lengths[0]:,} rows",
        unit="MiB",
        ours=peaks[1],
        theirs=peaks[0],
        ratio=peaks[0] / peaks[1],
        bar=BAR,
        notes=("1x means that memory does not grow with the file",),
    )


def peak_memory(command: list[str]) -> float:
    """Run a command and return the most memory it held at once, in MiB; see `cost_of`."""
    return cost_of(command)[1]


def cost_of(command: list[str]) -> Cost:
    """Run a command and measure it.

    Args:
        command: The command.

    Returns:
        Seconds from start to exit, and the peak of its resident memory in MiB,
        without the processes that it started.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    words = [sys.executable, "-c", _MEASURE, *command]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    seconds, peak = done.stdout.split()
    # Linux counts in KiB, macOS in bytes.
    return float(seconds), int(peak) / (1024**2 if sys.platform == "darwin" else 1024)
