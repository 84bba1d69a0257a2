"""Sentences to the files of a corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np

from condsim.contexts.corpus_arrays import ArrayWriter
from condsim.contexts.corpus_sentences import Sentence
from condsim.contexts.corpus_settings import CorpusCounts
from condsim.contexts.corpus_texts import TextWriter

__all__ = ["CHUNK_STARTS", "DOCUMENTS", "NAMES", "SENTENCES", "CorpusWriter"]

SENTENCES = "sentences.arrow"
NAMES = "names.arrow"
DOCUMENTS = "documents.npy"
CHUNK_STARTS = "chunk_starts.npy"


class CorpusWriter:
    """Writes sentences, documents and chunks to a folder."""

    def __init__(self, folder: Path, *, chunk_sentences: int, counts: CorpusCounts) -> None:
        """Opens the files.

        Args:
            folder: An empty folder.
            chunk_sentences: Most sentences of a chunk.
            counts: Where what is written is counted; changed in place.
        """
        self._chunk_sentences = chunk_sentences
        self._counts = counts
        self._content = hashlib.sha256()
        self._document = -1  # as read; the written ones have no gaps
        self._document_size = 0
        self._chunk_size = 0
        with ExitStack() as stack:
            self._sentences = stack.enter_context(TextWriter(folder / SENTENCES))
            self._names = stack.enter_context(TextWriter(folder / NAMES))
            self._documents = stack.enter_context(ArrayWriter(folder / DOCUMENTS, np.int32))
            self._chunks = stack.enter_context(ArrayWriter(folder / CHUNK_STARTS, np.int64))
            self._files = stack.pop_all()

    @property
    def content(self) -> str:
        """Hash of all sentences and where documents end, 64 hexadecimal digits."""
        return self._content.hexdigest()

    def write(self, sentences: Iterable[Sentence]) -> None:
        """Writes some more sentences.

        Args:
            sentences: They, in order.
        """
        counts = self._counts
        documents: list[int] = []
        starts: list[int] = []
        content: list[str] = []
        for document, name, text, words in sentences:
            if document != self._document:
                self._end_document()
                self._document = document
                self._names.append(name)
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

    def __enter__(self) -> CorpusWriter:
        """Returns the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the last document and closes the files."""
        self._end_document()
        self._chunks.append(np.array([self._counts.sentences], dtype=np.int64))
        self._files.__exit__(kind, error, trace)

    def _end_document(self) -> None:
        self._counts.single_sentence_documents += self._document_size == 1
        self._document_size = 0
