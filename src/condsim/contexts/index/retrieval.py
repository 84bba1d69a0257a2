"""Retrieval of text chunks that share words with a sentence, by TF-IDF of bi-grams (SSBC §3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from condsim.cache import build_once, changed_values, need_manifest, read_manifest, write_manifest
from condsim.contexts.corpus.stored import open_array
from condsim.contexts.index.building import (
    CHUNKS,
    COMMON,
    COMMON_TERMS,
    STARTS,
    WEIGHTS,
    Terms,
    build_index,
)
from condsim.contexts.settings import HOW_TO_SPLIT
from condsim.errors import InputError
from condsim.types import FloatArray, IntArray

_WHAT = "TF-IDF index"
_FORMAT = 1
_OFTEN = 1_000  # chunks between two reports of progress
_SCORES = 1 << 25  # scores held at once: 128 MiB
_BLOCK = 1 << 13  # chunks whose common terms are multiplied at once, to stay in the cache


class TfidfIndex:
    """Posting lists of words and bigrams on disk, memory-mapped.

    The scores are cosines of TF-IDF vectors, equal to those of scikit-learn's
    ``TfidfVectorizer(ngram_range=(1, 2), min_df=min_df, dtype=np.float32)``. A search reads the
    postings of the query's terms and nothing else. Terms of more than an eighth of the chunks
    ("the", "of") are kept as full rows, so that one matrix product adds them up for all sentences;
    the others' postings are added one list after the other.

    Attributes:
        folder: Its folder.
        revision: Revision of the corpus it was built from.
        min_df: Fewest chunks of a term.
    """

    folder: Path
    revision: str
    min_df: int

    def __init__(self, folder: Path) -> None:
        """Opens an index.

        Args:
            folder: The folder that :meth:`build` wrote.

        Raises:
            InputError: If the folder holds none, or is damaged.
        """
        manifest = need_manifest(
            folder, what=_WHAT, version=_FORMAT, made_by="'condsim contexts run'"
        )
        self.folder = folder
        try:
            self.revision = str(manifest["revision"])
            self.min_df = int(manifest["min_df"])
            self._chunks = int(manifest["counts"]["chunks"])
            texts = int(manifest["counts"]["texts"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"Cannot read the index in {folder}: {error}.") from error
        self._terms = Terms(folder, texts=texts)
        self._starts: IntArray = open_array(folder / STARTS, np.int64)
        self._postings: NDArray[np.int32] = open_array(folder / CHUNKS, np.int32)
        self._weights: FloatArray = open_array(folder / WEIGHTS, np.float32)
        common: IntArray = open_array(folder / COMMON_TERMS, np.int64)
        rows: FloatArray = open_array(folder / COMMON, np.float32)
        if (
            len(self._starts) != len(self._terms) + 1
            or not len(self._postings) == len(self._weights) == self._starts[-1]
            or len(rows) != len(common) * self._chunks
        ):
            raise InputError(f"{folder} is damaged: its files do not belong together.")
        self._common = rows.reshape(len(common), self._chunks)  # (common, chunks)
        self._row_of_common = np.full(len(self._terms), -1, dtype=np.int32)
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
        """Builds an index of the chunks of a corpus, or opens the existing one.

        Texts are read once, as a stream. Memory holds the distinct words and some hundred
        megabytes of entries; the disk, while it is built, ten bytes for each distinct term of each
        chunk beside the index.

        Args:
            texts: The chunks in order, such as ``corpus.chunk_texts()``.
            revision: That of the corpus: a folder with the index of another one is refused.
            min_df: Fewest chunks of a term. With 1 the index is about twice as large, for terms
                that find one chunk each.
            may_be_empty: Whether an index in which nothing can be found is allowed.
            progress: Called with the number of chunks read.

        Raises:
            InputError: If ``min_df`` is below 1, no term is left, or the folder holds something
                else or cannot be written.
            MissingExtraError: If the ``contexts`` extra is not installed.
        """
        if min_df < 1:
            raise InputError(f"'min_df' must be 1 or more. Got {min_df}.")
        wanted = {"revision": revision, "min_df": min_df}
        found = read_manifest(folder, what=_WHAT)
        if found is None:
            with build_once(folder, what=_WHAT) as partial:
                if partial is not None:
                    counted = _count(texts, progress or (lambda chunks: None))
                    counts = build_index(counted, partial, min_df=min_df)
                    if not may_be_empty:
                        _check(counts, min_df)
                    values = {"format": _FORMAT, **wanted, "counts": counts}
                    write_manifest(partial, values, what=_WHAT)
            found = read_manifest(folder, what=_WHAT) or {}
        if changed := changed_values(wanted, found):
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
        """Finds the chunks most like each sentence.

        Args:
            sentences: The sentences; hundreds at once are faster than one by one.
            top_n: Most chunks of a sentence.

        Returns:
            For each sentence its chunks and their scores in (0, 1], both ``(k,)`` with
            k <= ``top_n``, best first and of equal scores the earlier chunk first. Chunks that
            share no term are never among them: a sentence without known terms has none.

        Raises:
            InputError: If ``top_n`` is below 1.
        """
        if top_n < 1:
            raise InputError(f"'top_n' must be 1 or more. Got {top_n}.")
        if not len(sentences):
            return []
        # Batch by batch, each as large as the memory for scores allows.
        batches = -(-len(sentences) // max(1, _SCORES // max(1, self._chunks)))
        size = -(-len(sentences) // batches)
        memory = np.empty((size, self._chunks), dtype=np.float32)  # once: new pages are slow
        found = []
        for begin in range(0, len(sentences), size):
            vectors = self._terms.vectors(sentences[begin : begin + size]).tocoo()
            scores = memory[: vectors.shape[0]]
            self._score_common(vectors, scores)
            self._add_rare(vectors, scores)
            found += [best(row, top_n) for row in scores]
        return found

    def likeness(self, sentence: str, others: Sequence[str]) -> FloatArray:
        """Compares sentences by the words and bigrams they share.

        Args:
            others: Sentences to compare it with, n of them.

        Returns:
            Cosines of their TF-IDF vectors, ``(n,)``; terms that the index does not know do not
            count, and without known terms a cosine is 0.
        """
        vectors = self._terms.vectors([sentence, *others])
        found: FloatArray = vectors[1:] @ vectors[:1].toarray()[0]
        return found

    def _score_common(self, vectors: sparse.coo_array, scores: FloatArray) -> None:
        """Writes what the common terms give to the scores of all chunks, ``(m, chunks)``."""
        row = self._row_of_common[vectors.col]
        is_common = row >= 0
        used, place = np.unique(row[is_common], return_inverse=True)
        queries = np.zeros((len(scores), len(used)), dtype=np.float32)
        queries[vectors.row[is_common], place] = vectors.data[is_common]
        for begin in range(0, self._chunks, _BLOCK):
            part = slice(begin, begin + _BLOCK)
            np.matmul(queries, self._common[used, part], out=scores[:, part])

    def _add_rare(self, vectors: sparse.coo_array, scores: FloatArray) -> None:
        """Adds the postings of all other terms to the scores, ``(m, chunks)``."""
        begins, ends = self._starts[vectors.col], self._starts[vectors.col + 1]
        for place in np.flatnonzero(ends > begins).tolist():
            part = slice(begins[place], ends[place])
            values = vectors.data[place] * self._weights[part]
            np.add.at(scores[vectors.row[place]], self._postings[part], values)


def best(scores: FloatArray, top_n: int) -> tuple[IntArray, FloatArray]:
    """The chunks of the highest scores above 0 of all, ``(n,)``, and these scores, best first."""
    least = np.float32(0)
    if top_n < len(scores):
        least = np.partition(scores, len(scores) - top_n)[len(scores) - top_n]
    chunks = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    # Positive floats order as their bits do: one sort of score and chunk, as one number.
    bits = scores[chunks].view(np.uint32).astype(np.uint64)
    order = ((np.uint64(0xFFFFFFFF) - bits) << np.uint64(32)) | chunks.astype(np.uint64)
    order.sort()
    found = (order[:top_n] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return found, scores[found]


def _count(texts: Iterable[str], progress: Callable[[int], None]) -> Iterator[str]:
    """Passes texts on and reports their number."""
    number = 0
    for number, text in enumerate(texts, start=1):
        yield text
        if number % _OFTEN == 0:
            progress(number)
    progress(number)


def _check(counts: Mapping[str, int], min_df: int) -> None:
    """Refuses an index in which nothing can be found."""
    if not counts["texts"]:
        raise InputError(
            "No document of this corpus has two sentences or more, so it holds no context; the "
            f"contextual models need at least two documents that do. Mind that {HOW_TO_SPLIT}."
        )
    if not counts["words"]:
        raise InputError(
            f"No word is in {min_df} chunks or more of the {counts['chunks']} of this corpus; "
            "lower 'min_df'."
        )
