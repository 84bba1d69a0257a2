"""TF-IDF index of text chunks: posting lists of words and bigrams on disk (SSBC §3.3)."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import norm

from condsim.cache import changed_keys, check_unchanged, open_array
from condsim.errors import InputError, check_at_least
from condsim.model.baselines import tokens_of
from condsim.types import FloatArray, IntArray
from condsim_contexts.corpus import (
    DOCUMENT_RULE,
    build_folder,
    read_folder_manifest,
    write_folder_manifest,
)

COMMON_SHARE = 8
"""A term of more than one in this many chunks is common: kept as a full row, without chunk ids."""

_KIND = "TF-IDF index"
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
# Words, or pairs of words, that are sorted at once.
_OCCURRENCES_PER_PART = 1 << 22
_WEIGHTS_PER_BLOCK = 1 << 22


class TfidfIndex:
    """Posting lists of words and bigrams on disk, memory-mapped.

    The scores are cosines of TF-IDF vectors, equal to the cosines of scikit-learn's
    ``TfidfVectorizer(ngram_range=(1, 2), min_df=min_df, dtype=np.float32)``. A search reads the
    postings of the query's terms and nothing else. Terms of more than an eighth of the chunks
    ("the", "of") are stored as full rows, so that one matrix product adds them up for all
    sentences; the postings of other terms are added one list after the other.

    Attributes:
        folder: Its folder.
        revision: Revision of the corpus it was built from.
        min_df: Fewest chunks of a term.
    """

    def __init__(self, folder: Path) -> None:
        """Open the index that :meth:`build` wrote."""
        manifest = read_folder_manifest(folder, _KIND)
        self.folder = folder
        self.revision, self.min_df = str(manifest["revision"]), int(manifest["min_df"])
        self._chunks, self._texts = manifest["counts"]["chunks"], manifest["counts"]["texts"]
        # W words, then B bigrams.
        words = (folder / _WORDS).read_text(encoding="utf-8").split()
        self._words = {word: number for number, word in enumerate(words)}
        self._bigrams = open_array(folder / _BIGRAMS)
        self._frequencies = open_array(folder / _FREQUENCIES)
        self._starts = open_array(folder / _STARTS)
        self._postings = open_array(folder / _CHUNKS)
        self._weights: FloatArray = open_array(folder / _WEIGHTS)
        common, rows = open_array(folder / _COMMON_TERMS), open_array(folder / _COMMON)
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
        progress: Callable[[int], None] = lambda chunks: None,
    ) -> TfidfIndex:
        """Build an index of the chunks of a corpus, or open the existing one.

        Texts are read once, as a stream. Memory contains the distinct words, four bytes for each
        word of the texts and some hundred megabytes.

        Args:
            texts: The chunks in order, such as ``corpus.chunk_texts()``.
            folder: Where the index is written.
            revision: The corpus's: a folder with the index of another one is refused.
            min_df: Fewest chunks of a term. With 1 the index is about twice as large.
            may_be_empty: Whether an index in which nothing can be found is allowed.
            progress: Called with the number of chunks read.
        """
        check_at_least(1, min_df=min_df)
        with build_folder(folder, _KIND) as partial:
            if partial is not None:
                counts = _write_index(texts, partial, min_df, progress)
                if not (counts["texts"] or may_be_empty):
                    raise InputError(
                        "No document of this corpus has two sentences or more, so it has no "
                        f"context. Note that {DOCUMENT_RULE}."
                    )
                if not (counts["words"] or may_be_empty):
                    raise InputError(
                        f"No word is in {min_df} chunks or more of the {counts['chunks']} of this "
                        "corpus; lower 'min_df'."
                    )
                values = {"revision": revision, "min_df": min_df, "counts": counts}
                write_folder_manifest(partial, _KIND, values)
        index = cls(folder)
        stored = {"corpus": index.revision, "min_df": index.min_df}
        changed = changed_keys({"corpus": revision, "min_df": min_df}, stored)
        check_unchanged(folder, changed, subject="an index")
        return index

    def __len__(self) -> int:
        return int(self._chunks)

    def search(
        self, sentences: Sequence[str], *, top_n: int = 20_000
    ) -> list[tuple[IntArray, FloatArray]]:
        """Find the chunks most similar to each sentence; hundreds at once are faster.

        Returns:
            For each sentence its chunks and their scores in (0, 1], both ``(k,)`` with
            k <= ``top_n``, best first and of equal scores the earlier chunk first. Chunks that
            share no term are never among them.
        """
        check_at_least(1, top_n=top_n)
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
        vectors.data *= _rarity(self._frequencies[vectors.indices], self._texts)
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
        keys = (left[is_pair] * len(self._words) + right[is_pair]).astype(np.uint64)
        position = np.searchsorted(self._bigrams, keys)
        inside = position < len(self._bigrams)
        inside[inside] = self._bigrams[position[inside]] == keys[inside]
        return (
            np.concatenate([rows[unigrams >= 0], rows[:-1][is_pair][inside]]),
            np.concatenate([unigrams[unigrams >= 0], position[inside] + len(self._words)]),
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


def _rarity(frequencies: NDArray[Any], texts: int) -> NDArray[np.float64]:
    """Inverse document frequency, as scikit-learn smooths it."""
    return np.log((1 + texts) / (1 + frequencies.astype(np.float64))) + 1


def _write_index(
    texts: Iterable[str], folder: Path, min_df: int, progress: Callable[[int], None]
) -> dict[str, int]:
    """Write the files of an index, and count what is in it.

    Weights are as in scikit-learn's ``TfidfVectorizer``: term frequency times inverse document
    frequency, every chunk scaled to length 1. Empty chunks are not counted.
    """
    names, words, lengths, filled = _read_words(texts, progress)
    chunks = len(lengths)
    squares = np.zeros(chunks)
    all_terms, all_frequencies = [], []
    with (
        _growing_array(folder / _CHUNKS, np.int32) as add_chunks,
        _growing_array(folder / _WEIGHTS, np.float32) as add_weights,
        _growing_array(folder / _COMMON, np.float32) as add_common,
    ):
        for keys, occurrences in _occurrences(words, np.cumsum(lengths)):
            terms, rows = np.unique(keys, return_inverse=True)
            # Occurrences of a term in a chunk add up.
            shape = (len(terms), chunks)
            postings = sparse.csr_array((np.ones(len(rows)), (rows, occurrences)), shape=shape)
            is_frequent = np.diff(postings.indptr) >= min_df
            postings, terms = postings[is_frequent], terms[is_frequent]
            frequencies = np.diff(postings.indptr)
            postings.data *= np.repeat(_rarity(frequencies, filled), frequencies)
            squares += postings.power(2).sum(axis=0)
            is_common = frequencies > chunks / COMMON_SHARE
            rare = postings[~is_common]
            add_chunks(rare.indices)
            add_weights(rare.data)
            add_common(postings[is_common].astype(np.float32).toarray().ravel())
            all_terms.append(terms)
            all_frequencies.append(frequencies)
    norms = np.sqrt(squares)
    _scale_weights(folder, np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0))
    frequencies = np.concatenate(all_frequencies)
    is_common = frequencies > chunks / COMMON_SHARE
    # Common terms have no postings.
    starts = np.cumsum(np.concatenate([[0], np.where(is_common, 0, frequencies)]))
    np.save(folder / _FREQUENCIES, frequencies.astype(np.int32))
    np.save(folder / _STARTS, starts.astype(np.int64))
    np.save(folder / _COMMON_TERMS, np.flatnonzero(is_common))
    sizes = _write_terms(folder, names, np.concatenate(all_terms))
    return {"chunks": chunks, "texts": filled, "postings": int(starts[-1]), **sizes}


def _read_words(
    texts: Iterable[str], progress: Callable[[int], None]
) -> tuple[list[str], NDArray[np.int32], IntArray, int]:
    """Read the distinct words in order, the words of all chunks by number, and their lengths.

    The last is the number of chunks that have any text.
    """
    numbers: dict[str, int] = defaultdict(count().__next__)
    words, lengths, filled = array("i"), array("q"), 0
    for text in texts:
        before = len(words)
        filled += bool(text)
        words.extend(map(numbers.__getitem__, tokens_of(text)))
        lengths.append(len(words) - before)
        if len(lengths) % _CHUNKS_PER_REPORT == 0:
            progress(len(lengths))
    progress(len(lengths))
    return [*numbers], np.frombuffer(words, np.int32), np.frombuffer(lengths, np.int64), filled


def _occurrences(
    words: NDArray[np.int32], ends: IntArray
) -> Iterator[tuple[NDArray[np.uint64], IntArray]]:
    """List the terms in the text and the chunk of each: words, then bigrams, by first words.

    ``ends`` are the ends of chunks among the words, ``(chunks,)``. With d distinct words, bigrams
    have the numbers from d: (first + 1) * d + second.
    """
    occurrences = np.cumsum(np.bincount(words, minlength=1))
    limits = np.arange(_OCCURRENCES_PER_PART, len(words), _OCCURRENCES_PER_PART)
    bounds = np.unique([0, *np.searchsorted(occurrences, limits), len(occurrences)])
    for is_bigram in (False, True):
        for low, high in pairwise(bounds.tolist()):
            at = np.flatnonzero((words >= low) & (words < high))
            chunks = np.searchsorted(ends, at, side="right")
            if not is_bigram:
                yield words[at].astype(np.uint64), chunks
                continue
            inside = at + 1 < ends[chunks]
            first, second = (words[at[inside] + offset].astype(np.uint64) for offset in (0, 1))
            yield (first + np.uint64(1)) * np.uint64(len(occurrences)) + second, chunks[inside]


@contextmanager
def _growing_array(path: Path, dtype: DTypeLike) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write a ``.npy`` file of unknown length: yields a function that appends numbers, ``(k,)``."""
    length = 0
    with path.open("wb") as stream:

        def write_header() -> None:
            # NumPy pads the header so that the length can be written again.
            values = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(stream, values)

        def append(values: NDArray[Any]) -> None:
            nonlocal length
            stream.write(np.ascontiguousarray(values, dtype=dtype).data)
            length += len(values)

        write_header()
        yield append
        stream.seek(0)
        write_header()


def _write_terms(folder: Path, names: list[str], terms: NDArray[np.uint64]) -> dict[str, int]:
    """Write the words and bigrams of the index; ``names`` has all words, in it or not."""
    first_bigram = np.uint64(len(names))
    words, bigrams = terms[terms < first_bigram], terms[terms >= first_bigram]
    text = "".join(f"{names[word]}\n" for word in words.tolist())
    (folder / _WORDS).write_text(text, encoding="utf-8")
    # The words of a bigram are in as many chunks or more, so in the index too.
    numbers = np.zeros(len(names), dtype=np.uint64)
    numbers[words] = np.arange(len(words), dtype=np.uint64)
    first, second = np.divmod(bigrams, first_bigram)
    keys = numbers[first - np.uint64(1)] * np.uint64(len(words)) + numbers[second]
    np.save(folder / _BIGRAMS, keys)
    return {"words": len(words), "bigrams": len(bigrams)}


def _scale_weights(folder: Path, scale: NDArray[np.float64]) -> None:
    """Multiply all weights by the scale of their chunk, ``(chunks,)``, in place."""
    # Files are mapped again for each part: mapped pages count as memory of this process.
    for begin in range(0, len(np.load(folder / _CHUNKS, mmap_mode="r")), _WEIGHTS_PER_BLOCK):
        part = slice(begin, begin + _WEIGHTS_PER_BLOCK)
        chunks = np.load(folder / _CHUNKS, mmap_mode="r")[part]
        np.load(folder / _WEIGHTS, mmap_mode="r+")[part] *= scale[chunks]
    for begin in range(0, len(np.load(folder / _COMMON, mmap_mode="r")), max(1, len(scale))):
        np.load(folder / _COMMON, mmap_mode="r+")[begin : begin + len(scale)] *= scale
