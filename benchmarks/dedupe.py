"""Finding duplicates, against the time of encoding the texts, and its memory."""

from __future__ import annotations

import sys
import time
from itertools import islice

import condsim
from benchmarks.machine import usable_cores
from benchmarks.memory import peak_memory
from benchmarks.result import Result
from benchmarks.rows import generated_rows
from condsim.search.dedupe import find_duplicates

__all__ = ["BAR", "MEMORY_BAR", "run"]

BAR = 1 / 1.3
"""Finding duplicates takes at most 1.3 times as long as encoding alone."""
MEMORY_BAR = 0.9

_CONDITION = "the activity"
# Texts encoded at once, on both sides.
_BLOCK = 4096

# Random vectors, as encoding a million texts takes long; every fifth is near its neighbor. The
# default model is loaded and used, so that its memory counts.
_MEMORY = """
import sys
import numpy as np
import condsim
from condsim.model import EmbeddingScorer
from condsim.search import find_duplicates

model = condsim.load()
model.encode(["a man throws a ball"] * 4096, [str(n) for n in range(4096)])

class Random(EmbeddingScorer):
    def _embed(self, texts):
        seeds = [int(text) for _, text in texts]
        made = [np.random.default_rng(s - (s % 5 == 1)).standard_normal(384, "f4") for s in seeds]
        noise = np.random.default_rng(seeds[0]).standard_normal((len(seeds), 384), "f4")
        made = np.stack(made) + 0.01 * noise
        return made / np.linalg.norm(made, axis=1, keepdims=True)

class Texts:
    def __iter__(self):
        return map(str, range(int(sys.argv[1])))

scorer = Random(name="random", order="condition-first", dimension=384, calibration=None)
found = find_duplicates(Texts(), scorer, "any", at_least=0.95, overall=0)
assert int(sys.argv[1]) * 0.75 < found.kept.sum() < int(sys.argv[1]) * 0.85
"""


def run(*, quick: bool) -> list[Result]:
    """Measure the time of finding duplicates, and the growth of its memory.

    Args:
        quick: Whether to take 10,000 texts rather than 100,000 for time, and 5,000 and 20,000
            rather than 100,000 and 1,000,000 for memory.

    Returns:
        Time and memory.

    Raises:
        subprocess.CalledProcessError: If a measured process fails.
    """
    return [_time(10_000 if quick else 100_000), _memory(quick=quick)]


def _time(count: int) -> Result:
    """Encode texts, then find their duplicates, which encodes them as well."""
    rows = generated_rows(seed=1)
    texts = list(dict.fromkeys(row[0] for row in islice(rows, 4 * count)))[:count]
    model = condsim.load()
    # Memory is set up in the first run.
    model.encode(texts[:256], _CONDITION)
    start = time.perf_counter()
    for block in range(0, len(texts), _BLOCK):
        model.encode(texts[block : block + _BLOCK], _CONDITION)
    encoding = time.perf_counter() - start
    start = time.perf_counter()
    found = find_duplicates(texts, model, _CONDITION, at_least=0.9)
    ours = time.perf_counter() - start
    return Result(
        benchmark="dedupe",
        measured=f"{len(texts):,} distinct texts, cores: {usable_cores()}",
        peer="encoding them, without comparing",
        unit="s",
        ours=ours,
        theirs=encoding,
        ratio=encoding / ours,
        bar=BAR,
        notes=(f"generated texts, at least 0.9; {found.kept.sum():,} are kept",),
    )


def _memory(*, quick: bool) -> Result:
    counts = (5_000, 20_000) if quick else (100_000, 1_000_000)
    peaks = [peak_memory([sys.executable, "-c", _MEMORY, str(count)]) for count in counts]
    return Result(
        benchmark="dedupe",
        measured=f"peak memory, {counts[1]:,} texts",
        peer=f"condsim, {counts[0]:,} texts",
        unit="MiB",
        ours=peaks[1],
        theirs=peaks[0],
        ratio=peaks[0] / peaks[1],
        bar=MEMORY_BAR,
        notes=("1x means that memory does not grow with the file; random vectors",),
    )
