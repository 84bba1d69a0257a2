"""One pair from the command line, process start to exit, against sentence-transformers."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import version_of
from benchmarks.result import Result

__all__ = ["BAR", "run"]

BAR = 5.0

_PAIR = ("A man throws a ball.", "A girl kicks a ball.", "the sport")
_SCRIPT = Path(__file__).parent / "peers" / "score_one_script.py"


def run(peer: Path, *, quick: bool) -> list[Result]:
    """Times ``condsim score`` and a script of the peer's, in turns.

    Args:
        peer: The peer's model.
        quick: Whether to time each side twice rather than seven times.

    Returns:
        One result.

    Raises:
        subprocess.CalledProcessError: If a side fails.
    """
    beside = Path(sys.executable).with_name("condsim")
    command = [str(beside)] if beside.is_file() else [sys.executable, "-m", "condsim"]
    ours = [*command, "score", *_PAIR]
    theirs = [sys.executable, str(_SCRIPT), str(peer), *_PAIR]
    # Once unmeasured: bytecode is compiled and the files are in memory for both.
    _seconds(ours)
    _seconds(theirs)
    repeats = 2 if quick else 7
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(repeats)]
    our_median = statistics.median(our for our, _ in times)
    their_median = statistics.median(their for _, their in times)
    note = (
        f"medians of {repeats}, in turns; fastest {min(our for our, _ in times):.2f} s and "
        f"{min(their for _, their in times):.2f} s"
    )
    return [
        Result(
            benchmark="score_one",
            measured="one pair, process start to exit",
            peer=version_of("sentence-transformers"),
            unit="s",
            ours=our_median,
            theirs=their_median,
            ratio=their_median / our_median,
            bar=BAR,
            notes=(note,),
        )
    ]


def _seconds(command: Sequence[str]) -> float:
    """Run a command to its end; the Hub is off, so that neither side waits for a network."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start
