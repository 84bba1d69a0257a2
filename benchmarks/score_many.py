"""Ten thousand rows with the default model, against sentence-transformers in float32."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

import condsim
from benchmarks.machine import usable_cores, version_of
from benchmarks.memory import memory_result
from benchmarks.models import PeerModel
from benchmarks.result import Result
from benchmarks.rows import source
from condsim.encoders import Order, conditional_sentences
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.types import Task

__all__ = ["BAR", "MAX_TOLERANCE", "MEAN_TOLERANCE", "run"]

BAR = 4.0
MEAN_TOLERANCE = 0.015
"""Mean absolute difference of cosines that int8 may make."""
MAX_TOLERANCE = 0.1
"""Largest absolute difference of cosines that int8 may make."""

_BATCH_SIZES = (16, 32, 64, 128)
_TRIAL_ROWS = 500  # on which the peer's batch size is chosen

Pairs = list[list[str]]


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


def run(peer: PeerModel, data: Path, *, quick: bool) -> list[Result]:
    """Scores the same rows with both, in turns, and measures the memory of long files.

    Args:
        peer: The peer's model.
        data: A C-STS file; rows are generated where it is missing.
        quick: Whether to score 1,000 rows once rather than 10,000 three times.

    Returns:
        Speed, agreement of the scores, and memory.

    Raises:
        InputError: If the file breaks a rule.
    """
    rows = source(data, rows=1_000 if quick else 10_000)
    task = rows.task
    torch.set_num_threads(usable_cores())
    scorer = condsim.load()
    other = _best_peer(peer, order=scorer.order, task=task)

    def score() -> FloatArray:
        return scorer.score(task.sentences1, task.sentences2, task.conditions or (), scale="raw")

    def plain() -> FloatArray:
        return other.plain(task)

    def distinct() -> FloatArray:
        return other.distinct(task)

    scorer.score(*_head(task), scale="raw")  # the first run of a session sets up its memory
    times: dict[Callable[[], FloatArray], list[float]] = {score: [], plain: [], distinct: []}
    scores: dict[Callable[[], FloatArray], FloatArray] = {}
    for _ in range(1 if quick else 3):
        for side, seconds in times.items():
            start = time.perf_counter()
            scores[side] = side()
            seconds.append(time.perf_counter() - start)
    speed = {side: len(task) / statistics.median(seconds) for side, seconds in times.items()}
    fastest = max(speed[plain], speed[distinct])
    library = version_of("sentence-transformers")
    settings = f"float32, {torch.get_num_threads()} threads, batches of {other.batch_size}"
    used = f"{len(task):,} rows, {rows.origin}; the peer: {settings}"
    results = [
        Result(
            benchmark="score_many",
            measured=f"{len(task):,} rows, {usable_cores()} cores",
            peer=f"{library} ({how})",
            unit="rows/s",
            ours=speed[score],
            theirs=speed[side],
            ratio=speed[score] / speed[side],
            # Its own best settings are what the bar is set against.
            bar=BAR if speed[side] == fastest else None,
            notes=(used,) if side is plain else (),
        )
        for side, how in ((plain, "each column"), (distinct, "distinct"))
    ]
    results.append(_agreement(scores[score], scores[plain], peer))
    results.append(memory_result(quick=quick))
    return results


def _best_peer(peer: PeerModel, *, order: Order, task: Task) -> Peer:
    """Loads the peer and chooses the batch size that is fastest on the first rows."""
    model = SentenceTransformer(str(peer.folder), device="cpu", local_files_only=True)
    pairs = Peer(model, order, _BATCH_SIZES[0]).columns(task)[0][:_TRIAL_ROWS]
    seconds = dict.fromkeys(_BATCH_SIZES, float("inf"))
    for _ in range(2):
        for size in _BATCH_SIZES:
            start = time.perf_counter()
            Peer(model, order, size).encode(pairs)
            seconds[size] = min(seconds[size], time.perf_counter() - start)
    return Peer(model, order, min(seconds, key=lambda size: seconds[size]))


def _agreement(ours: FloatArray, theirs: FloatArray, peer: PeerModel) -> Result:
    """How near the int8 cosines are to the float32 ones."""
    difference = np.abs(ours.astype(np.float64) - theirs)
    mean, largest = float(difference.mean()), float(difference.max())
    correlation = float(np.corrcoef(ours, theirs)[0, 1])
    notes = [
        f"cosines differ by {mean:.4f} on average and {largest:.4f} at most, and correlate at "
        f"{correlation:.4f}; allowed are {MEAN_TOLERANCE} and {MAX_TOLERANCE}"
    ]
    if not peer.is_default:
        notes.append(
            f"not judged: {peer.folder.name} stands in for the default model in float32, which is "
            "not there"
        )
    return Result(
        benchmark="score_many",
        measured="difference int8 makes",
        peer="what is allowed",
        unit="cosine",
        ours=mean,
        theirs=MEAN_TOLERANCE,
        ratio=min(MEAN_TOLERANCE / max(mean, 1e-9), MAX_TOLERANCE / max(largest, 1e-9)),
        bar=1.0 if peer.is_default else None,
        notes=tuple(notes),
    )


def _head(task: Task) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The first few rows."""
    return task.sentences1[:64], task.sentences2[:64], (task.conditions or ())[:64]


def _cosines(first: FloatArray, second: FloatArray) -> FloatArray:
    """Cosines of embeddings of length 1, (n, dim) each; returns (n,)."""
    cosines: FloatArray = np.einsum("nd,nd->n", first, second)
    return cosines
