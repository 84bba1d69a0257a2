"""Second half of building the index: runs merged into posting lists, weighted, normalised."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.corpus_arrays import ArrayWriter
from condsim.contexts.retrieval_runs import CHUNK_BITS, WORD_BITS, Run, Runs, write_runs
from condsim.contexts.retrieval_terms import BIGRAMS, FREQUENCIES, WORDS
from condsim.types import IntArray

__all__ = ["CHUNKS", "COMMON", "COMMON_TERMS", "STARTS", "WEIGHTS", "build_index"]

STARTS = "starts.npy"
CHUNKS = "chunks.npy"
WEIGHTS = "weights.npy"
COMMON = "common.npy"
COMMON_TERMS = "common_terms.npy"

COMMON_SHARE = 8
"""A term of more than one in this many chunks is common: kept as a full row, without chunk ids."""

_PART = 1 << 22  # entries merged at once, but for a term that has more
_BLOCK = 1 << 22  # weights normalised at once

_Keys = NDArray[np.uint64]


def build_index(texts: Iterable[str], folder: Path, *, min_df: int) -> dict[str, int]:
    """Writes the files of an index.

    Weights are those of scikit-learn's ``TfidfVectorizer(ngram_range=(1, 2), min_df=min_df)``:
    term frequency times ``log((1 + n) / (1 + df)) + 1``, every chunk scaled to length 1. Empty
    chunks are not counted.

    Args:
        texts: The chunks in order; read once.
        folder: Where to write.
        min_df: Fewest chunks of a term.

    Returns:
        What was written: numbers of chunks, of those with text, words, bigrams, postings and common
        terms.
    """
    runs = write_runs(texts, folder)
    with ExitStack() as stack:
        merge = _Merge(runs, folder, stack, min_df=min_df)
        for keys, chunks, counts in _parts(runs):
            merge.add(keys, chunks, counts)
    runs.entries.unlink()
    runs.counts.unlink()
    bigrams = merge.write_terms()
    norms = np.sqrt(merge.squares)
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    _normalise(folder, scale, common=len(merge.common))
    return {
        "chunks": runs.chunks,
        "texts": runs.texts,
        "words": len(merge.words),
        "bigrams": bigrams,
        "postings": merge.postings,
        "common_terms": len(merge.common),
        "words_left_out": runs.words_left_out,
    }


class _Merge:
    """Takes the entries of one term after the other and writes its postings."""

    def __init__(self, runs: Runs, folder: Path, stack: ExitStack, *, min_df: int) -> None:
        self.squares = np.zeros(runs.chunks)  # sum of squared weights of each chunk
        self.words: list[int] = []  # numbers of the words that are kept
        self.common: list[int] = []
        self.postings = 0
        self._runs = runs
        self._folder = folder
        self._min_df = min_df
        self._terms = 0
        self._starts = stack.enter_context(ArrayWriter(folder / STARTS, np.int64))
        self._chunks = stack.enter_context(ArrayWriter(folder / CHUNKS, np.int32))
        self._weights = stack.enter_context(ArrayWriter(folder / WEIGHTS, np.float32))
        self._frequencies = stack.enter_context(ArrayWriter(folder / FREQUENCIES, np.int32))
        self._bigrams = stack.enter_context(ArrayWriter(folder / f"raw_{BIGRAMS}", np.uint64))
        self._common = stack.enter_context(ArrayWriter(folder / COMMON, np.float32))
        self._starts.append(np.zeros(1, dtype=np.int64))

    def add(self, keys: _Keys, chunks: IntArray, counts: NDArray[np.uint16]) -> None:
        """Takes all entries of some terms, sorted by term and chunk; all ``(k,)``."""
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
        found = np.diff(first, append=len(keys))  # chunks of each term
        kept = found >= self._min_df
        of_kept = np.repeat(kept, found)
        terms, frequencies = keys[first[kept]], found[kept]
        inverse = np.log((1 + self._runs.texts) / (1 + frequencies)) + 1
        chunks = chunks[of_kept]
        weights = counts[of_kept] * np.repeat(inverse, frequencies)
        self.squares += np.bincount(chunks, weights**2, minlength=self._runs.chunks)

        common = frequencies > self._runs.chunks / COMMON_SHARE
        ends = np.cumsum(frequencies)
        for place in np.flatnonzero(common).tolist():
            part = slice(ends[place] - frequencies[place], ends[place])
            row = np.zeros(self._runs.chunks, dtype=np.float32)
            row[chunks[part]] = weights[part]
            self._common.append(row)
            self.common.append(self._terms + place)
        rare = ~np.repeat(common, frequencies)
        self._chunks.append(chunks[rare])
        self._weights.append(weights[rare])
        self._starts.append(self.postings + np.cumsum(np.where(common, 0, frequencies)))
        self._frequencies.append(frequencies)
        self.postings += int(rare.sum())
        self._terms += len(terms)
        single = terms < np.uint64(1 << WORD_BITS)
        self.words += terms[single].tolist()
        self._bigrams.append(terms[~single])

    def write_terms(self) -> int:
        """Writes words and bigrams, words numbered anew without those that were not kept."""
        words = self._runs.words
        text = "".join(f"{words[number - 1]}\n" for number in self.words)
        (self._folder / WORDS).write_text(text, encoding="utf-8")
        new = np.zeros(len(words) + 1, dtype=np.uint64)
        new[self.words] = np.arange(len(self.words), dtype=np.uint64)
        raw = self._folder / f"raw_{BIGRAMS}"
        old = np.load(raw)
        low = np.uint64((1 << WORD_BITS) - 1)
        keys = new[old >> np.uint64(WORD_BITS)] * np.uint64(len(self.words)) + new[old & low]
        np.save(self._folder / BIGRAMS, keys)
        np.save(self._folder / COMMON_TERMS, np.array(self.common, dtype=np.int64))
        raw.unlink()
        return len(keys)


def _parts(runs: Runs) -> Iterator[tuple[_Keys, IntArray, NDArray[np.uint16]]]:
    """Entries of all runs by ranges of terms: terms, chunks and counts, sorted by term, chunk."""
    bounds = _bounds(runs)
    cuts = [_cuts(runs, run, bounds) for run in runs.runs]
    with runs.entries.open("rb") as entries_file, runs.counts.open("rb") as counts_file:
        for number in range(len(bounds) + 1):
            parts, counts = [], []
            for run, cut in zip(runs.runs, cuts, strict=True):
                length = cut[number + 1] - cut[number]
                entries_file.seek((run.offset + cut[number]) * 8)
                counts_file.seek((run.offset + cut[number]) * 2)
                parts.append(np.fromfile(entries_file, np.uint64, length))
                counts.append(np.fromfile(counts_file, np.uint16, length))
            low = np.uint64((1 << CHUNK_BITS) - 1)
            pairs = zip(parts, runs.runs, strict=True)
            chunks = [(part & low).astype(np.int64) + run.first_chunk for part, run in pairs]
            keys = np.concatenate(parts) >> np.uint64(CHUNK_BITS)
            order = np.argsort(keys, kind="stable")
            yield keys[order], np.concatenate(chunks)[order], np.concatenate(counts)[order]


def _bounds(runs: Runs) -> _Keys:
    """Entries at which new terms begin, so that about as many lie between any two."""
    sample = np.sort(np.concatenate([run.sample for run in runs.runs]))
    parts = max(1, -(-runs.length // _PART))
    chosen = sample[[len(sample) * part // parts for part in range(1, parts)]]
    shift = np.uint64(CHUNK_BITS)
    return np.unique((chosen >> shift) << shift)


def _cuts(runs: Runs, run: Run, bounds: _Keys) -> list[int]:
    """Where the bounds lie among the entries of a run, its begin and end included."""
    if not run.length:
        return [0] * (len(bounds) + 2)
    # Unmapped on return: mapped pages would count as this process's memory.
    entries = np.memmap(runs.entries, np.uint64, "r", run.offset * 8, (run.length,))
    return [0, *np.searchsorted(entries, bounds).tolist(), run.length]


def _normalise(folder: Path, scale: NDArray[np.float64], *, common: int) -> None:
    """Multiplies all weights by the scale of their chunk, ``(n,)``, in place."""
    length = len(np.load(folder / WEIGHTS, mmap_mode="r"))
    with (folder / CHUNKS).open("rb") as chunks_file, (folder / WEIGHTS).open("r+b") as file:
        chunks_file.seek(-4 * length, os.SEEK_END)
        place = file.seek(-4 * length, os.SEEK_END)
        for begin in range(0, length, _BLOCK):
            count = min(_BLOCK, length - begin)
            _multiply(file, place + 4 * begin, scale[np.fromfile(chunks_file, np.int32, count)])
    with (folder / COMMON).open("r+b") as file:
        place = file.seek(-4 * common * len(scale), os.SEEK_END)
        for row in range(common):
            _multiply(file, place + 4 * row * len(scale), scale)


def _multiply(file: BinaryIO, place: int, factors: NDArray[np.float64]) -> None:
    """Multiplies float32 numbers in a file."""
    file.seek(place)
    values = np.fromfile(file, np.float32, len(factors))
    file.seek(place)
    file.write((values * factors).astype(np.float32).data)
