"""TF-IDF index of text chunks: posting lists of words and bigrams on disk (SSBC §3.3)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import norm

from condsim.cache import build_once, changed_values, need_manifest, read_manifest, write_manifest
from condsim.contexts.corpus import DOCUMENT_RULE, open_array
from condsim.errors import InputError
from condsim.io import Closing
from condsim.model.baselines import tokens_of
from condsim.types import FloatArray, IntArray

COMMON_SHARE = 8
"""A term of more than one in this many chunks is common: kept as a full row, without chunk ids."""

_KIND = "TF-IDF index"
_FORMAT = 1
_WORDS = "words.txt"
_BIGRAMS = "bigrams.npy"
_FREQUENCIES = "document_frequencies.npy"
_STARTS = "starts.npy"
_CHUNKS = "chunks.npy"
_WEIGHTS = "weights.npy"
_COMMON = "common.npy"
_COMMON_TERMS = "common_terms.npy"

_CHUNKS_PER_REPORT = 1_000
# Scores in memory at once: 128 MiB.
_SCORES_PER_BATCH = 1 << 25
# Chunks whose common terms are multiplied at once, to stay in the processor's cache.
_CHUNKS_PER_PRODUCT = 1 << 13

# An entry of a run is a word, or a pair of words, and a chunk: 24 + 24 + 16 bits.
_WORD_BITS = 24
_CHUNK_BITS = 16
_MAX_WORDS = (1 << _WORD_BITS) - 1
_MAX_COUNT = np.iinfo(np.uint16).max
_WORDS_PER_RUN = 1 << 22
_ENTRIES_PER_SAMPLE = 1 << 12
_ENTRIES_PER_PART = 1 << 22
_WEIGHTS_PER_BLOCK = 1 << 22

_Keys = NDArray[np.uint64]


class TfidfIndex:
    """Posting lists of words and bigrams on disk, memory-mapped.

    The scores are cosines of TF-IDF vectors, equal to those of scikit-learn's
    ``TfidfVectorizer(ngram_range=(1, 2), min_df=min_df, dtype=np.float32)``. A search reads the
    postings of the query's terms and nothing else. Terms of more than an eighth of the chunks
    ("the", "of") are stored as full rows, so that one matrix product adds them up for all
    sentences; the postings of other terms are added one list after the other.

    Attributes:
        folder: Its folder.
        revision: Revision of the corpus it was built from.
        min_df: Fewest chunks of a term.
    """

    folder: Path
    revision: str
    min_df: int

    def __init__(self, folder: Path) -> None:
        """Open the index that :meth:`build` wrote."""
        manifest = need_manifest(
            folder, what=_KIND, version=_FORMAT, made_by="'condsim contexts run'"
        )
        self.folder = folder
        try:
            self.revision = str(manifest["revision"])
            self.min_df = int(manifest["min_df"])
            self._chunks = int(manifest["counts"]["chunks"])
            self._texts = int(manifest["counts"]["texts"])
            words = (folder / _WORDS).read_text(encoding="utf-8").split()
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise InputError(f"Cannot read the index in {folder}: {error}.") from error
        # W words, then B bigrams.
        self._words = {word: number for number, word in enumerate(words)}
        self._bigrams: _Keys = open_array(folder / _BIGRAMS, np.uint64)
        self._frequencies: NDArray[np.int32] = open_array(folder / _FREQUENCIES, np.int32)
        self._starts: IntArray = open_array(folder / _STARTS, np.int64)
        self._postings: NDArray[np.int32] = open_array(folder / _CHUNKS, np.int32)
        self._weights: FloatArray = open_array(folder / _WEIGHTS, np.float32)
        common: IntArray = open_array(folder / _COMMON_TERMS, np.int64)
        rows: FloatArray = open_array(folder / _COMMON, np.float32)
        terms = len(self._words) + len(self._bigrams)
        if (
            not len(self._frequencies) == len(self._starts) - 1 == terms
            or not len(self._postings) == len(self._weights) == self._starts[-1]
            or len(rows) != len(common) * self._chunks
        ):
            raise InputError(f"{folder} is damaged: its files do not belong together.")
        self._common = rows.reshape(len(common), self._chunks)  # (common, chunks)
        self._row_of_common = np.full(terms, -1, dtype=np.int32)
        self._row_of_common[common] = np.arange(len(common))

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        folder: Path,
        *,
        revision: str,
        min_df: int = 2,
        may_be_empty: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> TfidfIndex:
        """Build an index of the chunks of a corpus, or open the existing one.

        Texts are read once, as a stream. Memory contains the distinct words and some hundred
        megabytes of entries; the disk, while it is built, ten bytes for each distinct term of each
        chunk next to the index.

        Args:
            texts: The chunks in order, such as ``corpus.chunk_texts()``.
            folder: Where the index is written.
            revision: That of the corpus: a folder with the index of another one is refused.
            min_df: Fewest chunks of a term. With 1 the index is about twice as large.
            may_be_empty: Whether an index in which nothing can be found is allowed.
            progress: Called with the number of chunks read.
        """
        if min_df < 1:
            raise InputError(f"'min_df' must be 1 or more; got {min_df}.")
        values = {"revision": revision, "min_df": min_df}
        manifest = read_manifest(folder, what=_KIND)
        if manifest is None:
            with build_once(folder, what=_KIND) as partial:
                if partial is not None:
                    counts = _write_index(_reported(texts, progress), partial, min_df=min_df)
                    if not may_be_empty:
                        _check_terms(counts, min_df)
                    content = {"format": _FORMAT, **values, "counts": counts}
                    write_manifest(partial, content, what=_KIND)
            manifest = read_manifest(folder, what=_KIND) or {}
        if changed := changed_values(values, manifest):
            raise InputError(
                f"{folder} holds the index of another corpus or other settings: "
                f"{', '.join(changed)}. Give another folder, or remove {folder}."
            )
        return cls(folder)

    def __len__(self) -> int:
        return self._chunks

    def search(
        self, sentences: Sequence[str], *, top_n: int = 20_000
    ) -> list[tuple[IntArray, FloatArray]]:
        """Find the chunks most similar to each sentence; hundreds at once are faster.

        Returns:
            For each sentence its chunks and their scores in (0, 1], both ``(k,)`` with
            k <= ``top_n``, best first and of equal scores the earlier chunk first. Chunks that
            share no term are never among them.
        """
        if top_n < 1:
            raise InputError(f"'top_n' must be 1 or more; got {top_n}.")
        if not len(sentences):
            return []
        batches = -(-len(sentences) // max(1, _SCORES_PER_BATCH // max(1, self._chunks)))
        size = -(-len(sentences) // batches)
        # Allocated once: new pages are slow.
        memory = np.empty((size, self._chunks), dtype=np.float32)
        results = []
        for begin in range(0, len(sentences), size):
            vectors = self._vectors(sentences[begin : begin + size]).tocoo()
            scores = memory[: vectors.shape[0]]
            self._score_common(vectors, scores)
            self._add_rare(vectors, scores)
            results += [top_chunks(row, top_n) for row in scores]
        return results

    def likeness(self, sentence: str, candidates: Sequence[str]) -> FloatArray:
        """Compute the TF-IDF cosines of a sentence with n candidates, ``(n,)``.

        Terms that are not in the index do not count; without known terms a cosine is 0.
        """
        vectors = self._vectors([sentence, *candidates])
        cosines: FloatArray = vectors[1:] @ vectors[:1].toarray()[0]
        return cosines

    def _vectors(self, sentences: Sequence[str]) -> sparse.csr_array:
        """Compute TF-IDF vectors, ``(m, terms)``, of length 1, or 0 where no term is known."""
        rows, terms = self._occurrences(sentences)
        shape = (len(sentences), len(self._frequencies))
        vectors = sparse.csr_array((np.ones(len(rows)), (rows, terms)), shape=shape)
        frequencies = self._frequencies[vectors.indices].astype(np.float64)
        vectors.data *= np.log((1 + self._texts) / (1 + frequencies)) + 1
        vectors.data /= np.repeat(norm(vectors, axis=1), np.diff(vectors.indptr))
        return vectors.astype(np.float32)

    def _occurrences(self, sentences: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Find the sentence and the term of each known word and bigram, both ``(t,)``."""
        numbers = [
            [self._words.get(token, -1) for token in tokens_of(sentence)] for sentence in sentences
        ]
        unigrams = np.array([*chain.from_iterable(numbers)], dtype=np.int64)
        rows = np.repeat(np.arange(len(sentences)), [*map(len, numbers)])
        left, right = unigrams[:-1], unigrams[1:]
        is_pair = (rows[:-1] == rows[1:]) & (left >= 0) & (right >= 0)
        keys = left[is_pair].astype(np.uint64) * np.uint64(len(self._words))
        keys += right[is_pair].astype(np.uint64)
        position = np.searchsorted(self._bigrams, keys)
        inside = position < len(self._bigrams)
        inside[inside] = self._bigrams[position[inside]] == keys[inside]
        bigrams = position[inside].astype(np.int64) + len(self._words)
        return (
            np.concatenate([rows[unigrams >= 0], rows[:-1][is_pair][inside]]),
            np.concatenate([unigrams[unigrams >= 0], bigrams]),
        )

    def _score_common(self, vectors: sparse.coo_array, scores: FloatArray) -> None:
        """Set the scores of all chunks, ``(m, chunks)``, to the part of the common terms."""
        row = self._row_of_common[vectors.col]
        is_common = row >= 0
        rows, column = np.unique(row[is_common], return_inverse=True)
        queries = np.zeros((len(scores), len(rows)), dtype=np.float32)
        queries[vectors.row[is_common], column] = vectors.data[is_common]
        for begin in range(0, self._chunks, _CHUNKS_PER_PRODUCT):
            part = slice(begin, begin + _CHUNKS_PER_PRODUCT)
            np.matmul(queries, self._common[rows, part], out=scores[:, part])

    def _add_rare(self, vectors: sparse.coo_array, scores: FloatArray) -> None:
        """Add the postings of all other terms to the scores, ``(m, chunks)``."""
        begins, ends = self._starts[vectors.col], self._starts[vectors.col + 1]
        for term in np.flatnonzero(ends > begins).tolist():
            part = slice(begins[term], ends[term])
            values = vectors.data[term] * self._weights[part]
            np.add.at(scores[vectors.row[term]], self._postings[part], values)


def top_chunks(scores: FloatArray, top_n: int) -> tuple[IntArray, FloatArray]:
    """Find the chunks of the highest scores above 0, and these scores, best first."""
    lowest = np.float32(0)
    if top_n < len(scores):
        lowest = np.partition(scores, len(scores) - top_n)[len(scores) - top_n]
    chunks = np.flatnonzero(scores >= lowest if lowest > 0 else scores > 0)
    # Positive floats are ordered as their bits are: one sort of score and chunk, as one number.
    bits = scores[chunks].view(np.uint32).astype(np.uint64)
    order = ((np.uint64(0xFFFFFFFF) - bits) << np.uint64(32)) | chunks.astype(np.uint64)
    order.sort()
    chunks = (order[:top_n] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return chunks, scores[chunks]


def _reported(texts: Iterable[str], progress: Callable[[int], None] | None) -> Iterator[str]:
    number = 0
    for number, text in enumerate(texts, start=1):
        yield text
        if progress is not None and number % _CHUNKS_PER_REPORT == 0:
            progress(number)
    if progress is not None:
        progress(number)


def _check_terms(counts: dict[str, int], min_df: int) -> None:
    if not counts["texts"]:
        raise InputError(
            "No document of this corpus has two sentences or more, so it holds no context; the "
            f"contextual models need at least two such documents. Note that {DOCUMENT_RULE}."
        )
    if not counts["words"]:
        raise InputError(
            f"No word is in {min_df} chunks or more of the {counts['chunks']} of this corpus; "
            "lower 'min_df'."
        )


def _write_index(texts: Iterable[str], folder: Path, *, min_df: int) -> dict[str, int]:
    """Write the files of an index, and count what is in it.

    Chunks become sorted runs of entries on disk, which are merged to weighted posting lists, one
    range of terms at a time. Weights are those of scikit-learn's ``TfidfVectorizer``: term
    frequency times ``log((1 + n) / (1 + df)) + 1``, every chunk scaled to length 1. Empty chunks
    are not counted.
    """
    runs = _Runs(folder)
    runs.write(texts)
    with _PostingsWriter(folder, runs, min_df=min_df) as postings:
        for keys, chunks, counts in runs.parts():
            postings.add(keys, chunks, counts)
    sizes = postings.write_terms()
    runs.remove()
    norms = np.sqrt(postings.squares)
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    _normalise(folder, scale, common=len(postings.common))
    return {
        "chunks": runs.chunks,
        "texts": runs.texts,
        "words_left_out": runs.words_left_out,
        **sizes,
    }


class _WordNumbers(dict[str, int]):
    """Words numbered as they come, from 1; 0 once there are too many."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MAX_WORDS:
            return 0
        number = self[word] = len(self) + 1
        return number


class _Runs:
    """Sorted runs of entries on disk: the distinct terms of some chunks and their counts."""

    def __init__(self, folder: Path) -> None:
        self.words: dict[str, int] = _WordNumbers()
        self.chunks = self.texts = self.words_left_out = 0
        self._folder = folder
        # First chunk of each run, from which the chunks of its entries count.
        self._first_chunks: list[int] = []

    def write(self, texts: Iterable[str]) -> None:
        """Read chunks and write their terms."""
        number_of = self.words.__getitem__
        words, lengths = array("i"), array("q")
        for text in texts:
            before = len(words)
            words.extend(map(number_of, tokens_of(text)))
            lengths.append(len(words) - before)
            self.texts += bool(text)
            if len(words) >= _WORDS_PER_RUN or len(lengths) == 1 << _CHUNK_BITS:
                self._write_run(words, lengths)
                words, lengths = array("i"), array("q")
        self._write_run(words, lengths)

    def _write_run(self, words: array[int], lengths: array[int]) -> None:
        flat = np.frombuffer(words, dtype=np.int32).astype(np.uint64)
        chunk = np.repeat(
            np.arange(len(lengths), dtype=np.uint64), np.frombuffer(lengths, np.int64)
        )
        single = (flat << np.uint64(_CHUNK_BITS)) | chunk
        pair = (flat[:-1] << np.uint64(_WORD_BITS + _CHUNK_BITS)) | single[1:]
        is_pair = (chunk[:-1] == chunk[1:]) & (flat[:-1] > 0) & (flat[1:] > 0)
        entries, counts = np.unique(
            np.concatenate([single[flat > 0], pair[is_pair]]), return_counts=True
        )
        run = len(self._first_chunks)
        np.save(self._path("entries", run), entries)
        np.save(self._path("counts", run), np.minimum(counts, _MAX_COUNT).astype(np.uint16))
        self._first_chunks.append(self.chunks)
        self.chunks += len(lengths)
        self.words_left_out += int((flat == 0).sum())

    def parts(self) -> Iterator[tuple[_Keys, IntArray, NDArray[np.uint16]]]:
        """Merge all runs by ranges of terms: terms, chunks and counts, by term, then chunk."""
        bounds = self._bounds()
        cuts = [
            np.concatenate([[0], np.searchsorted(entries, bounds), [len(entries)]])
            for entries in self._mapped("entries")
        ]
        for number in range(len(bounds) + 1):
            parts = [slice(*cut[number : number + 2]) for cut in cuts]
            entries = self._read("entries", parts)
            sizes = [part.stop - part.start for part in parts]
            chunks = np.repeat(self._first_chunks, sizes)
            chunks += (entries & np.uint64((1 << _CHUNK_BITS) - 1)).astype(np.int64)
            keys = entries >> np.uint64(_CHUNK_BITS)
            order = np.argsort(keys, kind="stable")
            yield keys[order], chunks[order], self._read("counts", parts)[order]

    def _read(self, kind: str, parts: list[slice]) -> NDArray[Any]:
        # Copies, because mapped pages count as memory as long as they are mapped.
        return np.concatenate(
            [run[part].copy() for run, part in zip(self._mapped(kind), parts, strict=True)]
        )

    def _bounds(self) -> _Keys:
        """Choose entries at which new terms begin, with about as many entries between any two."""
        samples = [entries[::_ENTRIES_PER_SAMPLE].copy() for entries in self._mapped("entries")]
        total = sum(len(entries) for entries in self._mapped("entries"))
        sample = np.sort(np.concatenate(samples))
        parts = max(1, -(-total // _ENTRIES_PER_PART))
        chosen = sample[[len(sample) * part // parts for part in range(1, parts)]]
        return np.unique((chosen >> np.uint64(_CHUNK_BITS)) << np.uint64(_CHUNK_BITS))

    def _mapped(self, kind: str) -> Iterator[NDArray[Any]]:
        for run in range(len(self._first_chunks)):
            yield np.load(self._path(kind, run), mmap_mode="r")

    def remove(self) -> None:
        """Delete the files."""
        for run in range(len(self._first_chunks)):
            for kind in ("entries", "counts"):
                self._path(kind, run).unlink()

    def _path(self, kind: str, run: int) -> Path:
        return self._folder / f"run-{run:05d}-{kind}.npy"


class _ArrayWriter(Closing):
    """Writes a one-dimensional ``.npy`` file whose length is not known in advance."""

    # NumPy pads the header of such a file so that the length can grow in place: it is written again
    # when the file is closed.

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._stream = path.open("wb")
        self._length = 0
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Write more numbers, ``(k,)``, converted to the type of the file."""
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._length += len(values)

    def close(self) -> None:
        """Write the length."""
        with self._stream:
            self._stream.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._stream, header)


class _PostingsWriter(Closing):
    """Writes the postings of one term after the other."""

    def __init__(self, folder: Path, runs: _Runs, *, min_df: int) -> None:
        self._runs, self._folder, self._min_df = runs, folder, min_df
        # Sum of squared weights of each chunk.
        self.squares = np.zeros(runs.chunks)
        # Numbers of the words in the index, and places of the common terms in it.
        self.words: list[int] = []
        self.common: list[int] = []
        self._terms = 0
        self._bigrams: list[_Keys] = []
        self._frequencies: list[IntArray] = []
        self._files = {
            name: _ArrayWriter(folder / name, dtype)
            for name, dtype in (
                (_CHUNKS, np.int32),
                (_WEIGHTS, np.float32),
                (_COMMON, np.float32),
            )
        }

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def add(self, keys: _Keys, chunks: IntArray, counts: NDArray[np.uint16]) -> None:
        """Write all entries of some terms, sorted by term, then chunk; each ``(t,)``."""
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
        frequencies = np.diff(first, append=len(keys))
        is_frequent = frequencies >= self._min_df
        in_index = np.repeat(is_frequent, frequencies)
        terms, frequencies = keys[first[is_frequent]], frequencies[is_frequent]
        inverse = np.log((1 + self._runs.texts) / (1 + frequencies)) + 1
        chunks = chunks[in_index]
        weights = counts[in_index] * np.repeat(inverse, frequencies)
        self.squares += np.bincount(chunks, weights**2, minlength=self._runs.chunks)

        is_common = frequencies > self._runs.chunks / COMMON_SHARE
        ends = np.cumsum(frequencies)
        for term in np.flatnonzero(is_common).tolist():
            part = slice(ends[term] - frequencies[term], ends[term])
            row = np.zeros(self._runs.chunks, dtype=np.float32)
            row[chunks[part]] = weights[part]
            self._files[_COMMON].append(row)
            self.common.append(self._terms + term)
        is_rare = ~np.repeat(is_common, frequencies)
        self._files[_CHUNKS].append(chunks[is_rare])
        self._files[_WEIGHTS].append(weights[is_rare])
        self._frequencies.append(frequencies)
        self._terms += len(terms)
        is_word = terms < np.uint64(1 << _WORD_BITS)
        self.words += terms[is_word].tolist()
        self._bigrams.append(terms[~is_word])

    def write_terms(self) -> dict[str, int]:
        """Write the words and bigrams, with new numbers, and where their postings start."""
        words = list(self._runs.words)
        text = "".join(f"{words[number - 1]}\n" for number in self.words)
        (self._folder / _WORDS).write_text(text, encoding="utf-8")
        new = np.zeros(len(words) + 1, dtype=np.uint64)
        new[self.words] = np.arange(len(self.words), dtype=np.uint64)
        low = np.uint64((1 << _WORD_BITS) - 1)
        old = np.concatenate(self._bigrams)
        keys = new[old >> np.uint64(_WORD_BITS)] * np.uint64(len(self.words)) + new[old & low]
        np.save(self._folder / _BIGRAMS, keys)
        frequencies = np.concatenate(self._frequencies)
        np.save(self._folder / _FREQUENCIES, frequencies.astype(np.int32))
        # Common terms have no postings.
        frequencies[self.common] = 0
        starts = np.concatenate([[0], np.cumsum(frequencies)])
        np.save(self._folder / _STARTS, starts.astype(np.int64))
        np.save(self._folder / _COMMON_TERMS, np.array(self.common, dtype=np.int64))
        return {
            "words": len(self.words),
            "bigrams": len(keys),
            "postings": int(starts[-1]),
            "common_terms": len(self.common),
        }


def _normalise(folder: Path, scale: NDArray[np.float64], *, common: int) -> None:
    """Multiply all weights by the scale of their chunk, ``(n,)``, in place."""
    # Files are mapped again for each part: mapped pages count as memory of this process.
    for begin in range(0, len(np.load(folder / _CHUNKS, mmap_mode="r")), _WEIGHTS_PER_BLOCK):
        part = slice(begin, begin + _WEIGHTS_PER_BLOCK)
        chunks = np.load(folder / _CHUNKS, mmap_mode="r")[part]
        np.load(folder / _WEIGHTS, mmap_mode="r+")[part] *= scale[chunks]
    for row in range(common):
        np.load(folder / _COMMON, mmap_mode="r+").reshape(common, -1)[row] *= scale
