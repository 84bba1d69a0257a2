"""A corpus: documents of many kinds of files as sentences in order, on disk and memory-mapped.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     text = Path(folder, "rain.txt")
...     _ = text.write_text("It rains all day. The street is wet. Nobody goes out to play.")
...     corpus = prepare_corpus([text], Path(folder, "corpus"))
...     corpus.neighbors(np.array([0]), left=1, right=1).tolist(), corpus.counts.words
([[-1, 1]], 13)
"""

from __future__ import annotations

import hashlib
import json
import shutil
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from condsim.cache import check_folder, check_unchanged, open_array
from condsim.errors import InputError, one_line
from condsim.io import write_json
from condsim.paths import sha256_of
from condsim.types import BoolArray, IntArray
from condsim_contexts.recipe import CorpusSettings
from condsim_contexts.sentences import (
    CorpusCounts,
    CorpusSentence,
    Paragraph,
    distinct_sentences,
    find_inputs,
    read_paragraphs,
)

ROWS_PER_BATCH = 1 << 15
"""Rows of each record batch but the last, so that the batch of a row is known."""

DOCUMENT_RULE = (
    "a blank line ends a document of a text file, a line '= Title =' begins one, and with "
    "'corpus.documents: file' each file is one"
)
"""The rule by which a text is split into documents, for errors."""

_KIND = "corpus"
_SENTENCES = "sentences.arrow"
_DOCUMENTS = "documents.npy"
_CHUNK_STARTS = "chunk_starts.npy"
_CHUNKS_PER_READ = 10_000

MANIFEST = "manifest.json"
FORMAT = 1
"""Changes when earlier folders can no longer be read."""


class Corpus:
    """Sentences of documents in order, memory-mapped.

    A sentence is identified by its row, a *context* by the sentence it surrounds, its center, which
    is not part of it. A *chunk* is a run of consecutive sentences of one document.

    Attributes:
        folder: Its folder.
        revision: 12 hexadecimal digits that stand for its input files, settings and sentences.
        settings: The settings it was made with.
        counts: Its size and the sentences that were left out.
        documents: Document of each sentence, ``(n,)``, non-decreasing from 0; memory-mapped.
        chunk_starts: First sentence of each chunk, then n: ``(m + 1,)``; memory-mapped.
    """

    def __init__(self, folder: Path) -> None:
        """Open the corpus that :func:`prepare_corpus` wrote; its text is read on demand."""
        manifest = read_folder_manifest(folder, _KIND)
        self.folder = folder
        causes = (OSError, LookupError, TypeError, ValueError, pa.ArrowException)
        with one_line(f"The corpus in {folder} is damaged", *causes):
            self.revision = str(manifest["revision"])
            self.settings = CorpusSettings.model_validate(manifest["settings"])
            self.counts = CorpusCounts(**manifest["counts"])
            self.input_hashes = [source["sha256"] for source in manifest["inputs"]]
            self.documents = open_array(folder / _DOCUMENTS)
            self.chunk_starts = open_array(folder / _CHUNK_STARTS)
            text = pa.memory_map(str(folder / _SENTENCES))
            self._batches = pa.ipc.open_file(text).read_all().column(0).chunks
        if not len(self.documents) == self.chunk_starts[-1] == sum(map(len, self._batches)):
            raise InputError(f"The corpus in {folder} is damaged: its files differ in length.")

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
        """List the rows of the sentences of chunks, in the order of the chunks, ``(k,)``."""
        starts = self.chunk_starts
        return spans(starts[chunks], starts[chunks + 1] - starts[chunks])

    def neighbors(self, centers: IntArray, *, left: int = 2, right: int = 2) -> IntArray:
        """Find the sentences around some centers, ``(k,)``: their contexts.

        Returns:
            Rows in the order of the text, ``(k, left + right)``; -1 where the document ends, so
            all are -1 for a document of one sentence.
        """
        offsets = np.array([*range(-left, 0), *range(1, right + 1)], dtype=np.int64)
        rows = np.asarray(centers, dtype=np.int64)[:, None] + offsets  # (k, left + right)
        inside = (rows >= 0) & (rows < len(self))
        documents = self.documents[np.where(inside, rows, 0)]
        same: BoolArray = inside & (documents == self.documents[centers][:, None])
        return np.where(same, rows, -1)

    @cached_property
    def has_context(self) -> BoolArray:
        """Flags of the sentences that have a neighbor: the centers of contexts, ``(n,)``."""
        sizes = np.diff(self.document_starts)
        flags: BoolArray = np.repeat(sizes > 1, sizes)
        return flags

    @cached_property
    def document_starts(self) -> IntArray:
        """First sentence of each document, then n, ``(documents + 1,)``."""
        inner = np.flatnonzero(np.diff(self.documents)) + 1
        return np.concatenate([[0], inner, [len(self)]]).astype(np.int64)

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
        for first in range(0, len(self.chunk_starts) - 1, _CHUNKS_PER_READ):
            bounds = self.chunk_starts[first : first + _CHUNKS_PER_READ + 1]
            texts = self.sentences(np.arange(bounds[0], bounds[-1]))
            has_context = self.has_context[bounds[0] : bounds[-1]]
            for begin, end in pairwise((bounds - bounds[0]).tolist()):
                yield " ".join(texts[begin:end]) if has_context[begin] else ""


def prepare_corpus(
    inputs: Sequence[Path],
    output: Path,
    *,
    settings: CorpusSettings | None = None,
    progress: Callable[[int], None] | None = None,
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
    some bytes a sentence and some thousand sentences. ``progress`` is called with the number of
    sentences so far.
    """
    settings = settings or CorpusSettings()
    files = find_inputs(inputs)
    hashes = [sha256_of(file) for file in files]
    with build_folder(output, _KIND) as folder:
        if folder is not None:
            _build(files, hashes, folder, settings, progress)
    corpus = Corpus(output)
    changed = [key for key, value in settings if getattr(corpus.settings, key) != value]
    if corpus.input_hashes != hashes:
        changed.insert(0, "input files")
    check_unchanged(output, changed, subject="a corpus")
    return corpus


def _build(
    files: Sequence[Path],
    hashes: Sequence[str],
    folder: Path,
    settings: CorpusSettings,
    progress: Callable[[int], None] | None,
) -> None:
    counts = CorpusCounts()
    paragraphs = _taken_paragraphs(files, settings, counts)
    content = _write_sentences(
        distinct_sentences(paragraphs, settings, counts), folder, settings, counts, progress
    )
    if not counts.sentences:
        raise InputError(
            f"The corpus is empty: {', '.join(file.name for file in files)} has no sentence of "
            f"{settings.min_words} to {settings.max_words} words (dropped: "
            f"{counts.dropped_summary})."
        )
    identity = json.dumps([settings.model_dump(), list(hashes), content, FORMAT])
    values = {
        "revision": hashlib.sha256(identity.encode()).hexdigest()[:12],
        "settings": settings.model_dump(),
        "inputs": [
            {"name": file.name, "sha256": sha256, "bytes": file.stat().st_size}
            for file, sha256 in zip(files, hashes, strict=True)
        ],
        "counts": asdict(counts),
    }
    write_folder_manifest(folder, _KIND, values)


def _taken_paragraphs(
    files: Sequence[Path], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[Paragraph]:
    """Read the paragraphs of all documents, or of those drawn to have ``max_words_total``."""
    taken: BoolArray | None = None
    if settings.max_words_total is not None:
        sizes: list[int] = []
        for document, text, _ in read_paragraphs(files, settings):
            sizes += [0] * (document + 1 - len(sizes))
            sizes[document] += len(text.split())
        order = np.random.default_rng(settings.seed).permutation(len(sizes))
        words = np.cumsum(np.array(sizes, dtype=np.int64)[order])
        taken = np.zeros(len(sizes), dtype=np.bool_)
        taken[order[: int(np.searchsorted(words, settings.max_words_total)) + 1]] = True
        counts.documents_left = int((~taken).sum())
    last = -1
    for paragraph in read_paragraphs(files, settings):
        if taken is None or taken[paragraph.document]:
            counts.documents_read += paragraph.document != last
            last = paragraph.document
            yield paragraph


def _write_sentences(
    sentences: Iterator[CorpusSentence],
    folder: Path,
    settings: CorpusSettings,
    counts: CorpusCounts,
    progress: Callable[[int], None] | None,
) -> str:
    """Write sentences, documents and chunks; returns a hash of the sentences and documents."""
    content = hashlib.sha256()
    # Numbers of the documents as read.
    numbers = array("q")
    schema = pa.schema([("text", pa.string())])
    with pa.ipc.new_file(str(folder / _SENTENCES), schema) as writer:
        while batch := list(islice(sentences, ROWS_PER_BATCH)):
            for sentence in batch:
                if not numbers or numbers[-1] != sentence.document:
                    content.update(b"\n")
                numbers.append(sentence.document)
                content.update(f"{sentence.text}\n".encode())
            texts = pa.array([sentence.text for sentence in batch], pa.string())
            writer.write_batch(pa.record_batch([texts], schema=schema))
            counts.words += sum(sentence.words for sentence in batch)
            if progress is not None:
                progress(len(numbers))
    is_first = np.diff(np.frombuffer(numbers, np.int64), prepend=-1) > 0
    starts = np.flatnonzero(is_first)
    sizes = np.diff(starts, append=len(numbers))
    places = np.arange(len(numbers)) - np.repeat(starts, sizes)
    chunk_starts = np.flatnonzero(places % settings.chunk_sentences == 0)
    counts.sentences, counts.documents, counts.chunks = len(numbers), len(starts), len(chunk_starts)
    counts.single_sentence_documents = int((sizes == 1).sum())
    np.save(folder / _DOCUMENTS, (np.cumsum(is_first) - 1).astype(np.int32))
    np.save(folder / _CHUNK_STARTS, np.append(chunk_starts, len(numbers)))
    return content.hexdigest()


def spans(starts: IntArray, lengths: IntArray) -> IntArray:
    """List all rows of several runs, ``(t,)``, given their first rows and lengths, ``(u,)``."""
    ends = np.cumsum(lengths)
    rows: IntArray = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    return rows


def read_folder_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """Read the manifest of a folder, which must contain something of that kind."""
    manifest: dict[str, Any] = {}
    with one_line(f"{folder / MANIFEST} cannot be read", OSError, ValueError, TypeError):
        if (folder / MANIFEST).is_file():
            manifest = dict(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    if (manifest.get("kind"), manifest.get("format")) != (kind, FORMAT):
        raise InputError(
            f"{folder} contains no {kind} of this version of condsim; make it with 'condsim "
            "contexts run'."
        )
    return manifest


def write_folder_manifest(folder: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Write the manifest of a folder."""
    write_json({"kind": kind, "format": FORMAT, **values}, folder / MANIFEST)


@contextmanager
def build_folder(folder: Path, kind: str) -> Iterator[Path | None]:
    """Yield an empty folder to build in, renamed to ``folder`` on success; None if that exists."""
    if (folder / MANIFEST).is_file():
        yield None
        return
    check_folder(folder, subject=kind, own=[MANIFEST])
    partial = folder.with_name(f"{folder.name}.partial")
    with one_line(f"Cannot write the {kind} {folder}", OSError):
        # Left by a process that was killed.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            yield partial
            # An empty folder of that name may exist.
            with suppress(FileNotFoundError):
                folder.rmdir()
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
