"""Ten thousand rows with the default model, against sentence-transformers in float32."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

import condsim
from benchmarks.machine import usable_cores, version_of
from benchmarks.memory import memory_result
from benchmarks.result import Result
from benchmarks.rows import OTHER_DOMAINS, Source, source, take
from condsim.model.inputs import Order, conditional_sentences
from condsim.types import FloatArray, Task

__all__ = ["BAR", "MAX_TOLERANCE", "MEAN_TOLERANCE", "run"]

BAR = 4.0
MEAN_TOLERANCE = 0.015
"""Mean absolute difference of cosines that int8 may make."""
MAX_TOLERANCE = 0.1
"""Largest absolute difference of cosines that int8 may make."""

_BATCH_SIZES = (16, 32, 64, 128)
# The peer's batch size is chosen on these.
_TRIAL_ROWS = 500

_REPEATS = 3

Pairs = list[list[str]]
Side = Callable[[Task], FloatArray]


@dataclass(frozen=True)
class Peer:
    """sentence-transformers as it is used at its best.

    Attributes:
        model: The float32 model.
        order: Which of condition and sentence comes first.
        batch_size: The fastest of a few.
    """

    model: SentenceTransformer
    order: Order
    batch_size: int

    def plain(self, task: Task) -> FloatArray:
        """Cosines, (n,): the first sentences are encoded, then the second."""
        columns = [self.encode(pairs) for pairs in self.columns(task)]
        return _cosines(columns[0], columns[1])

    def distinct(self, task: Task) -> FloatArray:
        """Cosines, (n,): both columns in one call, each distinct conditional sentence once."""
        first, second = self.columns(task)
        place: dict[tuple[str, ...], int] = {}
        where = [place.setdefault(tuple(pair), len(place)) for pair in (*first, *second)]
        vectors = self.encode([list(pair) for pair in place])
        return _cosines(vectors[where[: len(first)]], vectors[where[len(first) :]])

    def columns(self, task: Task) -> tuple[Pairs, Pairs]:
        """Conditional sentences of both columns, n each."""
        conditions = task.conditions or ()
        return (
            conditional_sentences(task.sentences1, conditions, order=self.order),
            conditional_sentences(task.sentences2, conditions, order=self.order),
        )

    def encode(self, pairs: Pairs) -> FloatArray:
        """Embeddings of length 1, (n, dim)."""
        vectors = self.model.encode(
            pairs,
            batch_size=self.batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)


def run(peer: Path, data: Path, *, rows: int, quick: bool) -> list[Result]:
    """Score the same rows with both, in turns, and measure the memory of long files.

    Args:
        peer: The peer's model.
        data: A C-STS file; rows are generated where it is missing. Rows of other domains are scored
            as well where `OTHER_DOMAINS` is there.
        rows: Most rows of a file.
        quick: Whether to measure memory on short files.

    Returns:
        Speed and agreement of the scores, and memory.

    Raises:
        InputError: If a file breaks a rule.
    """
    torch.set_num_threads(usable_cores())
    files = [data, OTHER_DOMAINS] if OTHER_DOMAINS.is_file() else [data]
    compared = (_compare(peer, source(file, rows=rows)) for file in files)
    return [*chain.from_iterable(compared), memory_result(quick=quick)]


def _compare(peer: Path, rows: Source) -> list[Result]:
    """Speed and agreement on some rows."""
    scorer = condsim.load()
    other = _best_peer(peer, order=scorer.order, task=rows.task)

    def ours(task: Task) -> FloatArray:
        columns = task.sentences1, task.sentences2, task.conditions or ()
        return scorer.score(*columns, scale="raw")

    sides: dict[str, Side] = {
        "ours": ours,
        "each column": other.plain,
        "distinct": other.distinct,
    }
    # Memory is set up in the first run.
    for side in sides.values():
        side(take(rows.task, 64, seed=1))
    speeds, scores = _in_turns(sides, rows.task)
    used = (
        f"{len(rows.task):,} rows, {rows.origin}; medians of {_REPEATS}; the peer in float32 with "
        f"{torch.get_num_threads()} threads, in batches of {other.batch_size}, the fastest of "
        f"{', '.join(map(str, _BATCH_SIZES))}"
    )
    return [
        *_speed_results(speeds, rows=len(rows.task), note=used),
        _agreement(scores["ours"], scores["each column"]),
    ]


def _in_turns(
    sides: Mapping[str, Side], task: Task
) -> tuple[dict[str, float], dict[str, FloatArray]]:
    """Let each side score the rows in turn, a few times; return rows per second and scores."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    scores: dict[str, FloatArray] = {}
    for _ in range(_REPEATS):
        for name, side in sides.items():
            start = time.perf_counter()
            scores[name] = side(task)
            seconds[name].append(time.perf_counter() - start)
    return {name: len(task) / statistics.median(some) for name, some in seconds.items()}, scores


def _speed_results(speeds: Mapping[str, float], *, rows: int, note: str) -> list[Result]:
    """One result for each way to use the peer; the bar is set against the faster one."""
    best = max(("each column", "distinct"), key=lambda how: speeds[how])
    return [
        Result(
            benchmark="score_many",
            measured=f"{rows:,} rows, cores: {usable_cores()}",
            peer=f"{version_of('sentence-transformers')} ({how})",
            unit="rows/s",
            ours=speeds["ours"],
            theirs=speeds[how],
            ratio=speeds["ours"] / speeds[how],
            bar=BAR if how == best else None,
            notes=(note,) if how == best else (),
        )
        for how in ("each column", "distinct")
    ]


def _best_peer(peer: Path, *, order: Order, task: Task) -> Peer:
    """Load the peer and choose the batch size that is fastest on the first rows."""
    model = SentenceTransformer(str(peer), device="cpu", local_files_only=True)
    pairs = Peer(model, order, _BATCH_SIZES[0]).columns(task)[0][:_TRIAL_ROWS]
    seconds = dict.fromkeys(_BATCH_SIZES, float("inf"))
    for _ in range(2):
        for size in _BATCH_SIZES:
            start = time.perf_counter()
            Peer(model, order, size).encode(pairs)
            seconds[size] = min(seconds[size], time.perf_counter() - start)
    return Peer(model, order, min(seconds, key=lambda size: seconds[size]))


def _agreement(ours: FloatArray, theirs: FloatArray) -> Result:
    """Distance of the int8 cosines from the cosines of the same weights in float32."""
    difference = np.abs(ours.astype(np.float64) - theirs)
    mean, largest = float(difference.mean()), float(difference.max())
    correlation = float(np.corrcoef(ours, theirs)[0, 1])
    note = (
        f"cosines differ by {mean:.4f} on average and {largest:.4f} at most, and correlate at "
        f"{correlation:.4f}; allowed are {MEAN_TOLERANCE} and {MAX_TOLERANCE}"
    )
    return Result(
        benchmark="score_many",
        measured="difference int8 makes",
        peer="what is allowed",
        unit="cosine",
        ours=mean,
        theirs=MEAN_TOLERANCE,
        ratio=min(MEAN_TOLERANCE / max(mean, 1e-9), MAX_TOLERANCE / max(largest, 1e-9)),
        bar=1.0,
        notes=(note,),
    )


def _cosines(first: FloatArray, second: FloatArray) -> FloatArray:
    """Cosines of embeddings of length 1, (n, dim) each; returns (n,)."""
    cosines: FloatArray = np.einsum("nd,nd->n", first, second)
    return cosines
