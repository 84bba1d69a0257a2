"""The terms of Eq. 3 of a test set on disk: rows that weigh them in other ways share them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.io import replacing
from condsim.types import FloatArray, IntArray, Task
from condsim_contexts.equations import PairTerms
from condsim_contexts.origin import OriginScorer

BLOCK = 128
"""Pairs in a file: what is lost at most when the process is killed."""

_ALONE = "alone"
_PARTS = ("first", "second", "means", _ALONE)


@dataclass(frozen=True, eq=False)
class Block:
    """Some pairs of a test set."""

    pairs: list[PairTerms]
    without_contexts: int


def missing_pairs(folder: Path, pairs: int) -> int:
    """Count pairs whose terms are still to be computed; blocks are written in order."""
    done = 0
    while done < pairs and _whole(_file(folder, done)):
        done += BLOCK
    return max(0, pairs - done)


def write_blocks(
    folder: Path, scorer: OriginScorer, task: Task, *, progress: Callable[[int, int], None]
) -> None:
    """Compute the terms that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    start = len(task) - missing_pairs(folder, len(task))
    found = scorer.pair_terms(task.sentences1[start:], task.sentences2[start:])
    progress(start, len(task))
    pairs: list[PairTerms] = []
    before = scorer.without_contexts
    for done, pair in enumerate(found, start=start + 1):
        pairs.append(pair)
        if done % BLOCK == 0 or done == len(task):
            _write(_file(folder, done - len(pairs)), pairs, scorer.without_contexts - before)
            before, pairs = scorer.without_contexts, []
            progress(done, len(task))


def stored_blocks(folder: Path, pairs: int) -> Iterator[Block]:
    """Read what `write_blocks` wrote."""
    for first in range(0, pairs, BLOCK):
        with np.load(_file(folder, first)) as stored:
            arrays = {name: stored[name] for name in stored.files}
        ends = np.cumsum(arrays.pop("lengths"))
        lost = int(arrays.pop("without_contexts"))
        split = {
            name: list(values) if name.startswith(f"{_ALONE}.") else np.split(values, ends[:-1])
            for name, values in arrays.items()
        }
        yield Block([_pair(split, row) for row in range(len(ends))], lost)


def _pair(split: Mapping[str, Sequence[FloatArray]], row: int) -> PairTerms:
    parts: dict[str, dict[str, FloatArray]] = {part: {} for part in _PARTS}
    for name, values in split.items():
        part, _, term = name.partition(".")
        parts[part][term] = values[row]
    return PairTerms(**parts)


def _write(path: Path, pairs: Sequence[PairTerms], lost: int) -> None:
    arrays: dict[str, FloatArray] = {}
    for part in _PARTS:
        for term in getattr(pairs[0], part):
            values = [getattr(pair, part)[term] for pair in pairs]
            joined = np.stack(values) if part == _ALONE else np.concatenate(values)
            arrays[f"{part}.{term}"] = joined.astype(np.float32)
    lengths: IntArray = np.array([_contexts(pair) for pair in pairs], np.int64)
    with replacing(path) as partial, partial.open("wb") as stream:
        np.savez(stream, lengths=lengths, without_contexts=np.int64(lost), **arrays)  # type: ignore[arg-type]


def _contexts(pair: PairTerms) -> int:
    """Contexts of a pair, C_s1 and C_s2 together."""
    return len(next(iter(pair.first.values())))


def _file(folder: Path, first: int) -> Path:
    return folder / f"terms-{first // BLOCK:05d}.npz"


def _whole(path: Path) -> bool:
    """Check that a block exists and is not cut off, as by a power failure."""
    return path.is_file() and zipfile.is_zipfile(path)
