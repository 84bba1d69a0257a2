"""Building the index: chunks to sorted runs on disk, runs merged to weighted posting lists."""

# Words are those of scikit-learn's ``TfidfVectorizer``: two letters or digits and more, lower case.

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.corpus import ArrayWriter, open_array
from condsim.errors import InputError
from condsim.scorers import tokens_of
from condsim.types import FloatArray, IntArray

WORDS = "words.txt"
BIGRAMS = "bigrams.npy"
FREQUENCIES = "document_frequencies.npy"


@dataclass(frozen=True)
class Vectors:
    """Sparse vectors of m sentences, each of length 1, or empty where no term is known."""

    starts: IntArray  # (m + 1,), first term of each sentence, then their number
    terms: IntArray  # (k,), of one sentence after the other
    weights: FloatArray  # (k,)


class Terms:
    """The vocabulary of an index: W words, then B bigrams, each with its number of chunks."""

    def __init__(self, folder: Path, *, texts: int) -> None:
        try:
            text = (folder / WORDS).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{folder} is damaged: cannot read {WORDS}: {error}") from error
        self._words = {word: number for number, word in enumerate(text.split())}
        self._bigrams: NDArray[np.uint64] = open_array(folder / BIGRAMS, np.uint64)
        self._frequencies: NDArray[np.int32] = open_array(folder / FREQUENCIES, np.int32)
        self._texts = texts
        if len(self._frequencies) != len(self._words) + len(self._bigrams):
            raise InputError(f"{folder} is damaged: its files do not hold the same terms.")

    def __len__(self) -> int:
        return len(self._frequencies)

    def vectors(self, sentences: Sequence[str]) -> Vectors:
        """TF-IDF vectors of sentences, as scikit-learn's ``TfidfVectorizer`` has them."""
        rows, terms = self._occurrences(sentences)
        pairs, counts = np.unique(rows * len(self) + terms, return_counts=True)
        rows, terms = np.divmod(pairs, max(len(self), 1))
        frequencies = self._frequencies[terms].astype(np.float64)
        weights = counts * (np.log((1 + self._texts) / (1 + frequencies)) + 1)
        norms = np.sqrt(np.bincount(rows, weights**2, minlength=len(sentences)))
        starts = np.searchsorted(rows, np.arange(len(sentences) + 1))
        return Vectors(
            starts=starts.astype(np.int64),
            terms=terms,
            weights=(weights / norms[rows]).astype(np.float32),
        )

    def _occurrences(self, sentences: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Sentence and term of each word and bigram that is known."""
        words = array("q")
        lengths = [_extend(words, tokens_of(sentence), self._words) for sentence in sentences]
        unigrams = np.frombuffer(words, dtype=np.int64)
        rows = np.repeat(np.arange(len(sentences)), lengths)
        left, right = unigrams[:-1], unigrams[1:]
        known = (rows[:-1] == rows[1:]) & (left >= 0) & (right >= 0)
        keys = left[known].astype(np.uint64) * np.uint64(len(self._words))
        keys += right[known].astype(np.uint64)
        place = np.searchsorted(self._bigrams, keys)
        inside = place < len(self._bigrams)
        inside[inside] = self._bigrams[place[inside]] == keys[inside]
        bigrams = place[inside].astype(np.int64) + len(self._words)
        return (
            np.concatenate([rows[unigrams >= 0], rows[:-1][known][inside]]),
            np.concatenate([unigrams[unigrams >= 0], bigrams]),
        )


def _extend(numbers: array[int], tokens: Iterable[str], words: dict[str, int]) -> int:
    """Appends the numbers of words, -1 for those not known; returns how many."""
    before = len(numbers)
    numbers.extend(words.get(token, -1) for token in tokens)
    return len(numbers) - before


WORD_BITS = 24
CHUNK_BITS = 16

_RUN_WORDS = 1 << 22  # words of a run, after which it is sorted and written
_SAMPLED = 1 << 12
_MOST_WORDS = (1 << WORD_BITS) - 1
_MOST_OFTEN = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class Run:
    """A sorted run of entries on disk."""

    first_chunk: int  # that its entries count from
    length: int
    offset: int  # among the entries of all runs
    sample: NDArray[np.uint64]  # every 4,096th entry


@dataclass(frozen=True)
class SortedRuns:
    """All runs of a corpus, in order."""

    entries: Path  # uint64, of all runs
    counts: Path  # uint16, how often each term is in its chunk
    runs: tuple[Run, ...]
    words: list[str]  # in the order they were first met; word i has the number i + 1
    chunks: int
    texts: int  # chunks that are not empty
    words_left_out: int  # occurrences of words that came after the first 16.7 million

    @property
    def length(self) -> int:
        """Number of entries."""
        return sum(run.length for run in self.runs)


class _Numbers(dict[str, int]):
    """Numbers words as they come, from 1; 0 once there are too many."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            return 0
        number = self[word] = len(self) + 1
        return number


def write_runs(texts: Iterable[str], folder: Path) -> SortedRuns:
    """Reads chunks and writes their terms."""
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
    return SortedRuns(paths[0], paths[1], tuple(runs), list(numbers), chunks, filled, left_out)


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
    """Writes the files of an index."""
    # Weights are those of scikit-learn's ``TfidfVectorizer(ngram_range=(1, 2), min_df=min_df)``:
    # term frequency times ``log((1 + n) / (1 + df)) + 1``, every chunk scaled to length 1. Empty
    # chunks are not counted.
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
    """Writes the postings of one term after the other."""

    def __init__(self, runs: SortedRuns, folder: Path, stack: ExitStack, *, min_df: int) -> None:
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
        """Writes the words and bigrams kept, with new numbers; returns the number of bigrams."""
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


def _parts(runs: SortedRuns) -> Iterator[tuple[_Keys, IntArray, NDArray[np.uint16]]]:
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


def _bounds(runs: SortedRuns) -> _Keys:
    """Entries at which new terms begin, so that about as many lie between any two."""
    sample = np.sort(np.concatenate([run.sample for run in runs.runs]))
    parts = max(1, -(-runs.length // _PART))
    chosen = sample[[len(sample) * part // parts for part in range(1, parts)]]
    shift = np.uint64(CHUNK_BITS)
    return np.unique((chosen >> shift) << shift)


def _cuts(runs: SortedRuns, run: Run, bounds: _Keys) -> list[int]:
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
