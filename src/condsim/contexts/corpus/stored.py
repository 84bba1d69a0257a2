"""A corpus on disk: written sentence by sentence, opened memory-mapped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from condsim.cache import need_manifest
from condsim.contexts.corpus.reading import Sentence
from condsim.contexts.settings import HOW_TO_SPLIT, CorpusCounts, CorpusSettings
from condsim.errors import InputError
from condsim.io import Closing
from condsim.types import BoolArray, IntArray


def spans(starts: IntArray, lengths: IntArray) -> IntArray:
    """All rows of several runs, ``(t,)``, given their first rows and lengths, both ``(u,)``."""
    ends = np.cumsum(lengths)
    rows: IntArray = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    return rows


class ArrayWriter(Closing):
    """Writes a one-dimensional ``.npy`` file of a length that is not known before."""

    # NumPy pads the header of such a file so that the length can grow in place: it is written again
    # when the file is closed.

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._stream = path.open("wb")
        self._header()
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Writes more numbers, ``(k,)``, converted to the type of the file."""
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self.length += len(values)

    def close(self) -> None:
        """Writes the length."""
        with self._stream:
            self._stream.seek(0)
            self._header(self.length)

    def _header(self, length: int = 0) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(self._stream, header)


def open_array(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Opens a ``.npy`` file by memory mapping."""
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if values.dtype != np.dtype(dtype):
        raise InputError(f"{path.parent} is damaged: {path.name} holds {values.dtype} numbers.")
    return np.asarray(values)


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path.parent} is damaged: cannot read {path.name}: {error}")


BATCH = 1 << 15
"""Rows of each record batch but the last, so that the batch of a row is known."""


class TextWriter(Closing):
    """Writes texts to an Arrow file of one column ``text``, in batches of :data:`BATCH` rows."""

    def __init__(self, path: Path) -> None:
        self._schema = pa.schema([("text", pa.string())])
        self._writer = pa.ipc.new_file(str(path), self._schema)
        self._waiting: list[str] = []

    def append(self, text: str) -> None:
        """Writes one text."""
        self._waiting.append(text)
        if len(self._waiting) == BATCH:
            self._flush()

    def close(self) -> None:
        """Writes the last batch."""
        try:
            self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            column = pa.array(self._waiting, pa.string())
            self._writer.write_batch(pa.record_batch([column], schema=self._schema))
            self._waiting = []


class TextReader:
    """Texts of a file of :class:`TextWriter`, memory-mapped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            column = pa.ipc.open_file(pa.memory_map(str(path))).read_all().column(0)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(path, error) from error
        self._batches = column.chunks

    def take(self, ids: NDArray[np.integer[Any]]) -> list[str]:
        """Reads the texts of some rows, ``(k,)``, in any order."""
        rows = np.asarray(ids, dtype=np.int64)
        if not rows.size:
            return []
        if rows.min() < 0:
            raise IndexError(f"There is no row {rows.min()} in {self._path}.")
        order = np.argsort(rows, kind="stable")
        found: list[str] = []
        batches, starts = np.unique(rows[order] // BATCH, return_index=True)
        for batch, part in zip(batches.tolist(), np.split(order, starts[1:]), strict=True):
            found += self._batches[batch].take(pa.array(rows[part] - batch * BATCH)).to_pylist()
        texts = np.empty(len(rows), dtype=object)
        texts[order] = found
        return list(texts)

    def stream(self) -> Iterator[list[str]]:
        """Reads all texts without mapping: mapped pages would stay in memory."""
        with pa.OSFile(str(self._path)) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number).column(0).to_pylist()


SENTENCES = "sentences.arrow"
DOCUMENTS = "documents.npy"
CHUNK_STARTS = "chunk_starts.npy"
WHAT = "corpus"
FORMAT = 1


class CorpusWriter:
    """Writes sentences, documents and chunks to files of a folder, which the stack closes."""

    def __init__(
        self, folder: Path, files: ExitStack, *, chunk_sentences: int, counts: CorpusCounts
    ) -> None:
        self._chunk_sentences = chunk_sentences
        self._counts = counts
        self._content = hashlib.sha256()
        self._document = -1  # as read; the written ones have no gaps
        self._document_size = 0
        self._chunk_size = 0
        self._sentences = files.enter_context(TextWriter(folder / SENTENCES))
        self._documents = files.enter_context(ArrayWriter(folder / DOCUMENTS, np.int32))
        self._chunks = files.enter_context(ArrayWriter(folder / CHUNK_STARTS, np.int64))

    @property
    def content(self) -> str:
        """Hash of all sentences and where documents end, 64 hexadecimal digits."""
        return self._content.hexdigest()

    def write(self, sentences: Iterable[Sentence]) -> None:
        """Writes some more sentences."""
        counts = self._counts
        documents: list[int] = []
        starts: list[int] = []
        content: list[str] = []
        for document, text, words, _ in sentences:
            if document != self._document:
                self._end_document()
                self._document = document
                counts.documents += 1
                content.append("")
                self._chunk_size = self._chunk_sentences
            if self._chunk_size == self._chunk_sentences:
                starts.append(counts.sentences)
                self._chunk_size = 0
            self._sentences.append(text)
            documents.append(counts.documents - 1)
            content.append(text)
            counts.sentences += 1
            counts.words += words
            self._chunk_size += 1
            self._document_size += 1
        counts.chunks += len(starts)
        self._content.update("\n".join([*content, ""]).encode())
        self._documents.append(np.array(documents, dtype=np.int32))
        self._chunks.append(np.array(starts, dtype=np.int64))

    def finish(self) -> None:
        """Writes what follows the last sentence."""
        self._end_document()
        self._chunks.append(np.array([self._counts.sentences], dtype=np.int64))

    def _end_document(self) -> None:
        self._counts.single_sentence_documents += self._document_size == 1
        self._document_size = 0


class Corpus:
    """Sentences of documents in order, memory-mapped.

    A sentence is identified by its row, a *context* by the sentence it surrounds, its centre, which
    is not part of it. A *chunk* is a run of consecutive sentences of one document.

    Attributes:
        revision: 12 hexadecimal digits that stand for its input files, settings and sentences.
        settings: What it was made with.
        counts: What it holds and what was left out.
        documents: Document of each sentence, ``(n,)``, non-decreasing from 0; memory-mapped.
        chunk_starts: First sentence of each chunk, then n: ``(m + 1,)``; memory-mapped.
    """

    folder: Path
    revision: str
    settings: CorpusSettings
    counts: CorpusCounts
    documents: NDArray[np.int32]
    chunk_starts: IntArray

    def __init__(self, folder: Path) -> None:
        """Opens a corpus; its text is read on demand.

        Args:
            folder: The folder that :func:`prepare_corpus` wrote.

        Raises:
            InputError: If the folder holds none, or is damaged.
            MissingExtraError: If the ``contexts`` extra is not installed.
        """
        manifest = need_manifest(folder, what=WHAT, version=FORMAT, made_by="prepare_corpus")
        self.folder = folder
        try:
            self.revision = str(manifest["revision"])
            self.settings = CorpusSettings.model_validate(manifest["settings"])
            self.counts = CorpusCounts(**manifest["counts"])
        except (KeyError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise InputError(f"Cannot read the corpus in {folder}: {why}.") from error
        self.documents = open_array(folder / DOCUMENTS, np.int32)
        self.chunk_starts = open_array(folder / CHUNK_STARTS, np.int64)
        self._texts = TextReader(folder / SENTENCES)
        if len(self.documents) != self.counts.sentences:
            raise InputError(f"{folder} is damaged: {DOCUMENTS} is of another length.")

    def __len__(self) -> int:
        return len(self.documents)

    def sentences(self, ids: IntArray) -> list[str]:
        """Reads sentences.

        Args:
            ids: Rows of the corpus in any order, ``(k,)``.

        Raises:
            IndexError: If a row is not in the corpus, -1 included.
        """
        return self._texts.take(ids)

    def chunk_of(self, ids: IntArray) -> IntArray:
        """The chunk of each sentence.

        Args:
            ids: Rows of the corpus, any shape.

        Returns:
            Numbers of chunks, of that shape.
        """
        return np.searchsorted(self.chunk_starts, ids, side="right").astype(np.int64) - 1

    def neighbours(self, centres: IntArray, *, left: int = 2, right: int = 2) -> IntArray:
        """The sentences around some centres: their contexts.

        A document of one sentence has none: all are -1.

        Args:
            centres: Rows of the corpus, ``(k,)``.

        Returns:
            Rows in the order of the text, ``(k, left + right)``; -1 where the document ends.
        """
        offsets = np.array([*range(-left, 0), *range(1, right + 1)], dtype=np.int64)
        rows = np.asarray(centres, dtype=np.int64)[:, None] + offsets  # (k, left + right)
        inside = (rows >= 0) & (rows < len(self))
        known = self.documents[np.where(inside, rows, 0)]
        same: BoolArray = inside & (known == self.documents[centres][:, None])
        return np.where(same, rows, -1)

    @cached_property
    def has_context(self) -> BoolArray:
        """Which sentences have a neighbour, so that they are centres of a context, ``(n,)``."""
        documents = np.asarray(self.documents)
        same = documents[1:] == documents[:-1]
        found: BoolArray = np.append(same, False) | np.append(False, same)
        return found

    def chunk_texts(self) -> Iterator[str]:
        """Reads all chunks in order, each as its sentences with a space between.

        The chunk of a single-sentence document has no text: there is no context to find in it.

        Yields:
            One text a chunk; some thousand sentences are in memory at once.
        """
        starts = self.chunk_starts
        centres = self.has_context
        waiting: list[str] = []
        first, chunk = 0, 0  # row of waiting[0], next chunk
        for texts in self._texts.stream():
            waiting += texts
            last = int(np.searchsorted(starts, first + len(waiting), side="right")) - 1
            ends = (starts[chunk : last + 1] - first).tolist()
            for begin, end in pairwise(ends):
                yield " ".join(waiting[begin:end]) if centres[first + begin] else ""
            waiting = waiting[ends[-1] :]
            first, chunk = first + ends[-1], last


def document_starts(corpus: Corpus) -> IntArray:
    """The first sentence of each document, then n, ``(documents + 1,)``."""
    if not len(corpus):
        raise InputError("The corpus has no sentence; there is nothing to train on.")
    documents = np.asarray(corpus.documents)
    inner = np.flatnonzero(documents[1:] != documents[:-1]) + 1
    return np.concatenate([[0], inner, [len(documents)]]).astype(np.int64)


def held_out_documents(starts: IntArray, *, share: float, seed: int) -> BoolArray:
    """Draws the documents no model is trained on, ``(documents,)``; never those of one sentence."""
    usable = np.flatnonzero(np.diff(starts) >= 2)
    if len(usable) < 2:
        raise InputError(
            "The contextual models need at least two documents of two sentences or more, one of "
            f"which is held out. Got {len(usable)} among {len(starts) - 1} documents. Give more "
            f"text, or split it: {HOW_TO_SPLIT}."
        )
    count = min(max(1, round(share * len(usable))), len(usable) - 1)
    held_out = np.zeros(len(starts) - 1, dtype=np.bool_)
    held_out[np.random.default_rng((seed, 1)).permutation(usable)[:count]] = True
    return held_out
