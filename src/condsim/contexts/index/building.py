"""Building the index: chunks to sorted runs on disk, runs merged to weighted posting lists."""

# Words are those of scikit-learn's ``TfidfVectorizer``: two letters or digits and more, lower case.

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import norm

from condsim.contexts.corpus.stored import ArrayWriter, open_array
from condsim.errors import InputError
from condsim.model.baselines import tokens_of
from condsim.types import IntArray

WORDS = "words.txt"
BIGRAMS = "bigrams.npy"
FREQUENCIES = "document_frequencies.npy"


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

    def vectors(self, sentences: Sequence[str]) -> sparse.csr_array:
        """TF-IDF vectors of sentences, ``(m, terms)``; of length 1, or 0 where no term is known."""
        rows, terms = self._occurrences(sentences)
        shape = (len(sentences), len(self))
        found = sparse.csr_array((np.ones(len(rows)), (rows, terms)), shape=shape)  # of counts
        frequencies = self._frequencies[found.indices].astype(np.float64)
        found.data *= np.log((1 + self._texts) / (1 + frequencies)) + 1
        found.data /= np.repeat(norm(found, axis=1), np.diff(found.indptr))
        return found.astype(np.float32)

    def _occurrences(self, sentences: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Sentence and term of each word and bigram that is known."""
        numbers = [
            [self._words.get(token, -1) for token in tokens_of(sentence)] for sentence in sentences
        ]
        unigrams = np.array([*chain.from_iterable(numbers)], dtype=np.int64)
        rows = np.repeat(np.arange(len(sentences)), [*map(len, numbers)])
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

    def mapped(self, run: Run) -> NDArray[np.uint64]:
        """The entries of a run; mapped pages count as memory, so drop it soon."""
        if not run.length:  # nothing cannot be mapped
            return np.zeros(0, np.uint64)
        return np.memmap(self.entries, np.uint64, "r", run.offset * 8, (run.length,))


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
            runs.append(Run(chunks, len(entries), offset))
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
    cuts = [[0, *np.searchsorted(runs.mapped(run), bounds), run.length] for run in runs.runs]
    low = np.uint64((1 << CHUNK_BITS) - 1)
    for number in range(len(bounds) + 1):
        keys, chunks, counts = [], [], []
        for run, cut in zip(runs.runs, cuts, strict=True):
            begin, length = run.offset + cut[number], cut[number + 1] - cut[number]
            entries = np.fromfile(runs.entries, np.uint64, length, offset=begin * 8)
            keys.append(entries >> np.uint64(CHUNK_BITS))
            chunks.append((entries & low).astype(np.int64) + run.first_chunk)
            counts.append(np.fromfile(runs.counts, np.uint16, length, offset=begin * 2))
        joined = np.concatenate(keys)
        order = np.argsort(joined, kind="stable")
        yield joined[order], np.concatenate(chunks)[order], np.concatenate(counts)[order]


def _bounds(runs: SortedRuns) -> _Keys:
    """Entries at which new terms begin, so that about as many lie between any two."""
    sample = np.sort(np.concatenate([runs.mapped(run)[::_SAMPLED].copy() for run in runs.runs]))
    parts = max(1, -(-sum(run.length for run in runs.runs) // _PART))
    chosen = sample[[len(sample) * part // parts for part in range(1, parts)]]
    shift = np.uint64(CHUNK_BITS)
    return np.unique((chosen >> shift) << shift)


def _normalise(folder: Path, scale: NDArray[np.float64], *, common: int) -> None:
    """Multiplies all weights by the scale of their chunk, ``(n,)``, in place."""
    # Files are mapped anew for each part: mapped pages would count as this process's memory.
    for begin in range(0, len(np.load(folder / CHUNKS, mmap_mode="r")), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        chunks = np.load(folder / CHUNKS, mmap_mode="r")[part]
        np.load(folder / WEIGHTS, mmap_mode="r+")[part] *= scale[chunks]
    for row in range(common):
        np.load(folder / COMMON, mmap_mode="r+").reshape(common, -1)[row] *= scale
