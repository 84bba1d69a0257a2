"""A corpus: documents of many kinds of files as sentences in order, on disk and memory-mapped.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     text = Path(folder, "rain.txt")
...     _ = text.write_text("It rains all day. The street is wet. Nobody goes out to play.")
...     corpus = prepare_corpus([text], Path(folder, "corpus"))
...     corpus.neighbours(np.array([0]), left=1, right=1).tolist(), corpus.counts.words
([[-1, 1]], 13)
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from condsim.cache import build_once, changed_values, need_manifest, read_manifest, write_manifest
from condsim.contexts.recipe import CorpusSettings
from condsim.contexts.sentences import (
    CorpusCounts,
    CorpusSentence,
    Paragraph,
    count_bytes,
    find_inputs,
    read_paragraphs,
    split_sentences,
    unpacked_bytes,
)
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.types import BoolArray, IntArray

ROWS_PER_BATCH = 1 << 15
"""Rows of each record batch but the last, so that the batch of a row is known."""

DOCUMENT_RULE = (
    "a blank line ends a document of a text file, a line '= Title =' begins one, and with "
    "'corpus.documents: file' each file is one"
)
"""The rule by which a text is split into documents, for errors."""

_KIND = "corpus"
_FORMAT = 1
_SENTENCES = "sentences.arrow"
_DOCUMENTS = "documents.npy"
_CHUNK_STARTS = "chunk_starts.npy"
_SCHEMA = pa.schema([("text", pa.string())])


class Corpus:
    """Sentences of documents in order, memory-mapped.

    A sentence is identified by its row, a *context* by the sentence it surrounds, its centre, which
    is not part of it. A *chunk* is a run of consecutive sentences of one document.

    Attributes:
        folder: Its folder.
        revision: 12 hexadecimal digits that stand for its input files, settings and sentences.
        settings: The settings it was made with.
        counts: Its size and the sentences that were left out.
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
        """Open the corpus that :func:`prepare_corpus` wrote; its text is read on demand."""
        manifest = need_manifest(folder, what=_KIND, version=_FORMAT, made_by="prepare_corpus")
        self.folder = folder
        try:
            self.revision = str(manifest["revision"])
            self.settings = CorpusSettings.model_validate(manifest["settings"])
            self.counts = CorpusCounts(**manifest["counts"])
        except (KeyError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise InputError(f"Cannot read the corpus in {folder}: {why}.") from error
        self.documents = open_array(folder / _DOCUMENTS, np.int32)
        self.chunk_starts = open_array(folder / _CHUNK_STARTS, np.int64)
        path = folder / _SENTENCES
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from error
        self._batches = table.column(0).chunks
        if len(self.documents) != self.counts.sentences:
            raise InputError(f"{folder} is damaged: {_DOCUMENTS} has another length.")

    def __len__(self) -> int:
        return len(self.documents)

    def sentences(self, ids: IntArray | Sequence[int]) -> list[str]:
        """Read the sentences of some rows, ``(k,)``, in any order."""
        rows = np.asarray(ids, dtype=np.int64)
        if not rows.size:
            return []
        if rows.min() < 0 or rows.max() >= len(self):
            raise IndexError(f"Rows must be between 0 and {len(self) - 1}; got {rows}.")
        order = np.argsort(rows, kind="stable")
        sorted_texts: list[str] = []
        batches, starts = np.unique(rows[order] // ROWS_PER_BATCH, return_index=True)
        for batch, part in zip(batches.tolist(), np.split(order, starts[1:]), strict=True):
            inner = pa.array(rows[part] - batch * ROWS_PER_BATCH)
            sorted_texts += self._batches[batch].take(inner).to_pylist()
        texts = np.empty(len(rows), dtype=object)
        texts[order] = sorted_texts
        return list(texts)

    def chunk_of(self, ids: IntArray) -> IntArray:
        """Find the chunk of each sentence; any shape."""
        return np.searchsorted(self.chunk_starts, ids, side="right").astype(np.int64) - 1

    def chunk_rows(self, chunks: IntArray) -> IntArray:
        """List the rows of the sentences of chunks, those of the first chunk first, ``(k,)``."""
        starts = self.chunk_starts
        return spans(starts[chunks], starts[chunks + 1] - starts[chunks])

    def neighbours(self, centres: IntArray, *, left: int = 2, right: int = 2) -> IntArray:
        """Find the sentences around some centres, ``(k,)``: their contexts.

        Returns:
            Rows in the order of the text, ``(k, left + right)``; -1 where the document ends, so
            all are -1 for a document of one sentence.
        """
        offsets = np.array([*range(-left, 0), *range(1, right + 1)], dtype=np.int64)
        rows = np.asarray(centres, dtype=np.int64)[:, None] + offsets  # (k, left + right)
        inside = (rows >= 0) & (rows < len(self))
        documents = self.documents[np.where(inside, rows, 0)]
        same: BoolArray = inside & (documents == self.documents[centres][:, None])
        return np.where(same, rows, -1)

    @cached_property
    def has_context(self) -> BoolArray:
        """Flags of the sentences that have a neighbour: the centres of contexts, ``(n,)``."""
        documents = np.asarray(self.documents)
        same = documents[1:] == documents[:-1]
        flags: BoolArray = np.append(same, False) | np.append(False, same)
        return flags

    @cached_property
    def document_starts(self) -> IntArray:
        """First sentence of each document, then n, ``(documents + 1,)``."""
        documents = np.asarray(self.documents)
        inner = np.flatnonzero(documents[1:] != documents[:-1]) + 1
        return np.concatenate([[0], inner, [len(documents)]]).astype(np.int64)

    def held_out_documents(self, *, share: float, seed: int) -> BoolArray:
        """Draw the documents that are not trained on, ``(documents,)``; none of one sentence."""
        starts = self.document_starts
        usable = np.flatnonzero(np.diff(starts) >= 2)
        if len(usable) < 2:
            raise InputError(
                "The contextual models need at least two documents of two sentences or more, one "
                f"of which is held out; got {len(usable)} among {len(starts) - 1} documents. Give "
                f"more text, or split it: {DOCUMENT_RULE}."
            )
        count = min(max(1, round(share * len(usable))), len(usable) - 1)
        held_out = np.zeros(len(starts) - 1, dtype=np.bool_)
        held_out[np.random.default_rng((seed, 1)).permutation(usable)[:count]] = True
        return held_out

    def blocks(self, size: int) -> Iterator[list[str]]:
        """Read all sentences in order, ``size`` at a time."""
        for first in range(0, len(self), size):
            yield self.sentences(np.arange(first, min(first + size, len(self))))

    def chunk_texts(self) -> Iterator[str]:
        """Read all chunks in order, each as its sentences with a space between.

        The chunk of a single-sentence document is empty: there is no context to find in it.
        """
        starts, has_context = self.chunk_starts, self.has_context
        buffer: list[str] = []
        # Row of the first buffered sentence, and the next chunk.
        first, chunk = 0, 0
        # Mapped pages would stay in memory, so the file is read instead.
        with pa.OSFile(str(self.folder / _SENTENCES)) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                buffer += reader.get_batch(number).column(0).to_pylist()
                last = int(np.searchsorted(starts, first + len(buffer), side="right")) - 1
                ends = (starts[chunk : last + 1] - first).tolist()
                for begin, end in pairwise(ends):
                    yield " ".join(buffer[begin:end]) if has_context[first + begin] else ""
                buffer = buffer[ends[-1] :]
                first, chunk = first + ends[-1], last


def prepare_corpus(
    inputs: Sequence[Path],
    output: Path,
    *,
    settings: CorpusSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Corpus:
    """Make a corpus of text files, JSONL, Parquet and captions, or open it if it exists.

    The suffix says what an input is; all but Parquet may be gzipped (``.gz``):

    - ``.txt``: every line is a paragraph, ``= Title =`` begins a document, lines such as
      ``== Heading ==`` are left out. In a file without titles a blank line ends a document, or with
      ``documents="file"`` nothing does.
    - ``.jsonl`` and ``.parquet``: a document a row, its text in ``text_field``; the lines of a
      text are its paragraphs.
    - ``.tsv``: a header, then a row for each document of one sentence, in ``caption_field``.

    Sentences that are too short or long, have control characters or no letter or digit, or have
    the same words as an earlier one are dropped and counted. Text is streamed: memory contains
    eight bytes a sentence and some thousand sentences. ``progress`` is called with the bytes of
    text read and the estimated total.
    """
    settings = settings or CorpusSettings()
    files = find_inputs(inputs)
    manifest = read_manifest(output, what=_KIND)
    hashes = [sha256_of(file) for file in files]
    if manifest is None:
        with build_once(output, what=_KIND) as folder:
            if folder is not None:
                _build(files, hashes, folder, settings, progress)
        manifest = read_manifest(output, what=_KIND) or {}
    changed = changed_values(settings.model_dump(), manifest.get("settings", {}))
    if [source.get("sha256") for source in manifest.get("inputs", [])] != hashes:
        changed.insert(0, "its input files are others")
    if changed:
        raise InputError(
            f"{output} holds another corpus: {', '.join(changed)}. Give another folder, or remove "
            "this one and what was made from it."
        )
    return Corpus(output)


def _build(
    files: Sequence[Path],
    hashes: Sequence[str],
    folder: Path,
    settings: CorpusSettings,
    progress: Callable[[int, int], None] | None,
) -> None:
    counts = CorpusCounts()
    taken = _taken_documents(files, settings, counts)
    paragraphs = read_paragraphs(files, settings)
    if progress is not None:
        paragraphs = count_bytes(paragraphs, progress, sum(map(unpacked_bytes, files)))
    blocks = split_sentences(_counted_documents(paragraphs, taken, counts), settings, counts)
    content = _write_sentences(blocks, folder, counts, chunk_sentences=settings.chunk_sentences)
    if not counts.sentences:
        raise InputError(
            f"The corpus is empty: {', '.join(file.name for file in files)} has no sentence of "
            f"{settings.min_words} to {settings.max_words} words (dropped: "
            f"{counts.dropped_summary})."
        )
    identity = [settings.model_dump(), list(hashes), content, _FORMAT]
    values = {
        "format": _FORMAT,
        "revision": hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12],
        "settings": settings.model_dump(),
        "inputs": [
            {"name": file.name, "sha256": sha256, "bytes": file.stat().st_size}
            for file, sha256 in zip(files, hashes, strict=True)
        ],
        "counts": asdict(counts),
    }
    write_manifest(folder, values, what=_KIND)


def _taken_documents(
    files: Sequence[Path], settings: CorpusSettings, counts: CorpusCounts
) -> BoolArray | None:
    """Draw the documents to take, ``(documents,)``; None for all. Reads the files once."""
    if settings.max_words_total is None:
        return None
    sizes: list[int] = []
    for document, text, _ in read_paragraphs(files, settings):
        if document >= len(sizes):
            sizes += [0] * (document + 1 - len(sizes))
        sizes[document] += len(text.split())
    order = np.random.default_rng(settings.seed).permutation(len(sizes))
    words = np.cumsum(np.array(sizes, dtype=np.int64)[order])
    enough = int(np.searchsorted(words, settings.max_words_total)) + 1
    taken = np.zeros(len(sizes), dtype=np.bool_)
    taken[order[:enough]] = True
    counts.documents_left = int((~taken).sum())
    return taken


def _counted_documents(
    paragraphs: Iterator[Paragraph], taken: BoolArray | None, counts: CorpusCounts
) -> Iterator[Paragraph]:
    """Pass on the paragraphs of the documents that are taken, and count these documents."""
    last = -1
    for paragraph in paragraphs:
        if taken is not None and not taken[paragraph.document]:
            continue
        if paragraph.document != last:
            counts.documents_read += 1
            last = paragraph.document
        yield paragraph


def _write_sentences(
    blocks: Iterator[list[CorpusSentence]],
    folder: Path,
    counts: CorpusCounts,
    *,
    chunk_sentences: int,
) -> str:
    """Write sentences, documents and chunks; returns a hash of the sentences and documents."""
    content = hashlib.sha256()
    documents, chunk_starts = array("i"), array("q")
    # Number of the document as read, and sentences of the current document and chunk.
    document, document_size, chunk_size = -1, 0, 0
    buffer: list[str] = []
    with pa.ipc.new_file(str(folder / _SENTENCES), _SCHEMA) as writer:
        for block in blocks:
            hashed: list[str] = []
            for sentence in block:
                if sentence.document != document:
                    counts.single_sentence_documents += document_size == 1
                    counts.documents += 1
                    document, document_size, chunk_size = sentence.document, 0, chunk_sentences
                    hashed.append("")
                if chunk_size == chunk_sentences:
                    chunk_starts.append(len(documents))
                    chunk_size = 0
                documents.append(counts.documents - 1)
                buffer.append(sentence.text)
                hashed.append(sentence.text)
                counts.words += sentence.words
                chunk_size += 1
                document_size += 1
            content.update("\n".join([*hashed, ""]).encode())
            while len(buffer) >= ROWS_PER_BATCH:
                _write_batch(writer, buffer[:ROWS_PER_BATCH])
                buffer = buffer[ROWS_PER_BATCH:]
        if buffer:
            _write_batch(writer, buffer)
    counts.single_sentence_documents += document_size == 1
    counts.sentences, counts.chunks = len(documents), len(chunk_starts)
    chunk_starts.append(len(documents))
    np.save(folder / _DOCUMENTS, np.array(documents, dtype=np.int32))
    np.save(folder / _CHUNK_STARTS, np.array(chunk_starts, dtype=np.int64))
    return content.hexdigest()


def _write_batch(writer: Any, texts: list[str]) -> None:  # noqa: ANN401  (pyarrow has no types)
    writer.write_batch(pa.record_batch([pa.array(texts, pa.string())], schema=_SCHEMA))


def spans(starts: IntArray, lengths: IntArray) -> IntArray:
    """List all rows of several runs, ``(t,)``, given their first rows and lengths, ``(u,)``."""
    ends = np.cumsum(lengths)
    rows: IntArray = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    return rows


def open_array(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Open a ``.npy`` file by memory mapping."""
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if values.dtype != np.dtype(dtype):
        raise InputError(f"{path.parent} is damaged: {path.name} contains {values.dtype} numbers.")
    return np.asarray(values)


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path.parent} is damaged: cannot read {path.name}: {error}")
