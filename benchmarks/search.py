"""Search under a new condition over a million stored texts."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.contexts_text import sentences
from benchmarks.memory import peak_memory
from benchmarks.result import Result
from condsim.model.base import Conditions, Texts
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.search.index import Index
from condsim.types import FloatArray

__all__ = ["ANEW", "FIRST", "MEMORY", "WHOLE", "run"]

FIRST = 0.15
"""Seconds of the first stage over a million texts."""
WHOLE = 0.6
"""Seconds of a whole search that scores 200 of them."""
MEMORY = 1.2e9 / 2**20
"""MiB."""
ANEW = 1000.0
"""How many times faster the first stage must be than encoding the texts under the condition."""

# Texts whose encoding is timed.
_ENCODED = 10_000
_CONDITION = "the place"
_RANDOM = np.random.default_rng(0)
_SEARCH = """
import sys
from benchmarks.search import opened
index = opened(sys.argv[1])
for _ in range(3):
    index.search("Two people wait for a train.", "the place", rescore=200)
"""


class FastScorer(OnnxScorer):
    """The default model, with random vectors for the collection: only their number counts."""

    def encode(
        self, sentences: Texts, condition: Conditions | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Encode single texts and those under a condition; all others become random vectors."""
        if condition is not None or isinstance(sentences, str):
            return super().encode(sentences, condition, overall=overall)
        vectors = _RANDOM.standard_normal((len(sentences), self.dimension), np.float32)
        scaled: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled


@dataclass(frozen=True)
class Times:
    """Median seconds of the first stage with one text scored, and of a whole search."""

    first: float
    whole: float


def opened(folder: str) -> Index:
    """Open an index of the benchmark."""
    return Index.open(folder, model=FastScorer(DEFAULT_FOLDER))


def run(*, quick: bool) -> list[Result]:
    """Measure searches over 10,000 texts and over 1,000,000.

    Args:
        quick: Whether to take 2,000 and 20,000 instead.

    Returns:
        Both stages, their growth, memory, and the ratio to encoding again.

    Raises:
        InputError: If an index cannot be written.
        subprocess.CalledProcessError: If the search whose memory is measured fails.
    """
    source, origin = sentences()
    sizes = (2_000, 20_000) if quick else (10_000, 1_000_000)
    some = source[: 500 if quick else _ENCODED]
    scorer = FastScorer(DEFAULT_FOLDER)
    anew = _seconds(lambda: scorer.encode(some, _CONDITION)) / len(some)
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        times = [_measured(source, size, Path(folder, str(size))) for size in sizes]
        peak = peak_memory([sys.executable, "-c", _SEARCH, str(Path(folder, str(sizes[1])))])
    small, large = times
    note = f"{sizes[1]:,} of {origin}, repeated; random vectors; the index was opened before"
    what = f"{sizes[1]:,} texts"
    return [
        _result(f"first stage, {what}", "the 150 ms promised", large.first, FIRST, 1.0, note),
        _result(f"whole search, {what}", "the 600 ms promised", large.whole, WHOLE, 1.0, note),
        _result(f"first stage, {what}", f"{sizes[0]:,} texts", large.first, small.first, None),
        _result(
            f"a new condition, {what}",
            f"encoding them anew, from {len(some):,}",
            large.first,
            anew * sizes[1],
            ANEW,
        ),
        Result(
            benchmark="search",
            measured=f"peak memory, {what}",
            peer="the 1.2 GB promised",
            unit="MiB",
            ours=peak,
            theirs=MEMORY,
            ratio=MEMORY / peak,
            bar=1.0,
        ),
    ]


def _measured(source: list[str], size: int, folder: Path) -> Times:
    """Build an index and search it."""
    file = folder.with_suffix(".jsonl")
    with file.open("w", encoding="utf-8") as stream:
        for row in range(size):
            text = f"{source[row % len(source)]} {row // len(source) or ''}".strip()
            stream.write(json.dumps({"text": text, "year": 1990 + row % 35}) + "\n")
    index = Index.build(file, folder, model=FastScorer(DEFAULT_FOLDER))
    queries = [source[row * 37 % len(source)] for row in range(11)]

    def median(rescore: int) -> float:
        return statistics.median(
            _seconds(lambda: index.search(query, _CONDITION, top=1, rescore=rescore))  # noqa: B023
            for query in queries
        )

    # The first search reads the vectors.
    index.search(queries[0], _CONDITION)
    return Times(median(1), median(200))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _result(
    measured: str, peer: str, ours: float, theirs: float, bar: float | None, *notes: str
) -> Result:
    return Result(
        benchmark="search",
        measured=measured,
        peer=peer,
        unit="ms",
        ours=1000 * ours,
        theirs=1000 * theirs,
        ratio=theirs / ours,
        bar=bar,
        notes=notes,
    )
