"""First half of building the index: the terms of each chunk, as sorted runs on disk.

An entry is one number of 64 bits: the left word of a bigram (24 bits, 0 for a single word), its
right word or the word (24 bits), and the chunk within the run (16 bits). Sorting a run's entries
brings the chunks of a term together, in order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.retrieval_terms import tokens_of
from condsim.types import IntArray

__all__ = ["CHUNK_BITS", "WORD_BITS", "Run", "Runs", "write_runs"]

WORD_BITS = 24
CHUNK_BITS = 16

_RUN_WORDS = 1 << 22  # words of a run, after which it is sorted and written
_SAMPLED = 1 << 12
_MOST_WORDS = (1 << WORD_BITS) - 1
_MOST_OFTEN = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class Run:
    """A sorted run on disk.

    Attributes:
        first_chunk: The chunk that its entries count from.
        length: Number of its entries.
        offset: Where they begin among those of all runs.
        sample: Every 4,096th of them, ``(k,)``.
    """

    first_chunk: int
    length: int
    offset: int
    sample: NDArray[np.uint64]


@dataclass(frozen=True)
class Runs:
    """All runs of a corpus.

    Attributes:
        entries: File of all runs' entries, uint64.
        counts: File of how often each term is in its chunk, uint16.
        runs: The runs in order.
        words: All words in the order they were first met; word ``i`` has the number ``i + 1``.
        chunks: Number of chunks.
        texts: Number of those that are not empty.
        words_left_out: Occurrences of words that came after the first 16.7 million.
    """

    entries: Path
    counts: Path
    runs: tuple[Run, ...]
    words: list[str]
    chunks: int
    texts: int
    words_left_out: int

    @property
    def length(self) -> int:
        """Number of entries."""
        return sum(run.length for run in self.runs)


class _Numbers(dict[str, int]):
    """Numbers words as they come, from 1; 0 when there are too many."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            return 0
        number = self[word] = len(self) + 1
        return number


def write_runs(texts: Iterable[str], folder: Path) -> Runs:
    """Reads chunks and writes their terms.

    Args:
        texts: The chunks in order.
        folder: Where to write.

    Returns:
        The runs; memory held one of them and all distinct words.
    """
    numbers = _Numbers()
    number_of = numbers.__getitem__
    words, lengths = array("i"), array("q")
    runs: list[Run] = []
    chunks = filled = left_out = 0
    paths = folder / "entries", folder / "counts"
    with paths[0].open("wb") as entries_file, paths[1].open("wb") as counts_file:

        def flush() -> None:
            nonlocal chunks, left_out
            flat = np.frombuffer(words, dtype=np.int32).astype(np.uint64)
            entries, counts = _run(flat, np.frombuffer(lengths, dtype=np.int64))
            entries_file.write(entries.data)
            counts_file.write(counts.data)
            offset = runs[-1].offset + runs[-1].length if runs else 0
            runs.append(Run(chunks, len(entries), offset, entries[::_SAMPLED].copy()))
            chunks += len(lengths)
            left_out += int((flat == 0).sum())

        for text in texts:
            before = len(words)
            words.extend(map(number_of, tokens_of(text)))
            lengths.append(len(words) - before)
            filled += bool(text)
            if len(words) >= _RUN_WORDS or len(lengths) == 1 << CHUNK_BITS:
                flush()
                words, lengths = array("i"), array("q")
        flush()
    return Runs(paths[0], paths[1], tuple(runs), list(numbers), chunks, filled, left_out)


def _run(
    words: NDArray[np.uint64], lengths: IntArray
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """The distinct entries of some chunks, sorted, and how often each occurs."""
    chunk_bits = np.uint64(CHUNK_BITS)
    chunk = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    single = (words << chunk_bits) | chunk
    pair = (words[:-1] << np.uint64(WORD_BITS + CHUNK_BITS)) | single[1:]
    inside = (chunk[:-1] == chunk[1:]) & (words[:-1] > 0) & (words[1:] > 0)
    entries = np.concatenate([single[words > 0], pair[inside]])
    entries.sort()
    first = np.flatnonzero(np.concatenate([[True], entries[1:] != entries[:-1]])[: len(entries)])
    counts = np.diff(first, append=len(entries))
    return entries[first], np.minimum(counts, _MOST_OFTEN).astype(np.uint16)
