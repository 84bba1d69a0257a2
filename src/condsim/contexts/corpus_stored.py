"""A corpus on disk: opened in milliseconds whatever its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.corpus_arrays import open_array
from condsim.contexts.corpus_folder import need_manifest
from condsim.contexts.corpus_settings import CorpusCounts, CorpusSettings
from condsim.contexts.corpus_texts import TextReader
from condsim.contexts.corpus_writing import CHUNK_STARTS, DOCUMENTS, NAMES, SENTENCES
from condsim.errors import InputError
from condsim.types import BoolArray, IntArray

__all__ = ["FORMAT", "WHAT", "Corpus"]

WHAT = "corpus"
FORMAT = 1


class Corpus:
    """Sentences of documents in order, memory-mapped.

    A sentence is named by its row. A *context* is named by the sentence it surrounds, its centre,
    which is no part of it. A *chunk* is a run of consecutive sentences of one document.

    Attributes:
        folder: Where it lies.
        revision: 12 hexadecimal digits that stand for its input files, settings and sentences.
        settings: What it was made with.
        counts: What it holds and what was left out.
        documents: Document of each sentence, ``(n,)``, from 0 and never falling; memory-mapped.
        chunk_starts: First sentence of each chunk, then n: ``(m + 1,)``; memory-mapped.
    """

    folder: Path
    revision: str
    settings: CorpusSettings
    counts: CorpusCounts
    documents: NDArray[np.int32]
    chunk_starts: IntArray

    def __init__(self, folder: Path) -> None:
        """Opens a corpus; see :meth:`open`."""
        manifest = need_manifest(folder, what=WHAT, version=FORMAT, made_by="prepare_corpus")
        self.folder = folder
        try:
            self.revision = str(manifest["revision"])
            self.settings = CorpusSettings(**manifest["settings"])
            self.counts = CorpusCounts(**manifest["counts"])
        except (KeyError, TypeError) as error:
            raise InputError(f"Cannot read the corpus in {folder}: {error}.") from error
        self.documents = open_array(folder / DOCUMENTS, np.int32)
        self.chunk_starts = open_array(folder / CHUNK_STARTS, np.int64)
        self._texts = TextReader(folder / SENTENCES)
        self._names = TextReader(folder / NAMES)
        if len(self.documents) != self.counts.sentences:
            raise InputError(f"{folder} is damaged: {DOCUMENTS} is of another length.")

    @classmethod
    def open(cls, folder: Path) -> Corpus:
        """Opens a corpus; nothing of its text is read before it is asked for.

        Args:
            folder: The folder that :func:`prepare_corpus` wrote.

        Returns:
            The corpus.

        Raises:
            InputError: If the folder holds none, or is damaged.
            MissingExtraError: If the ``contexts`` extra is not installed.
        """
        return cls(folder)

    def __reduce__(self) -> tuple[Callable[[Path], Corpus], tuple[Path]]:
        """Another process opens the folder anew."""
        return Corpus, (self.folder,)

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.documents)

    def sentences(self, ids: IntArray) -> list[str]:
        """Reads sentences.

        Args:
            ids: Rows of the corpus in any order, ``(k,)``.

        Returns:
            Their texts.

        Raises:
            IndexError: If a row is not in the corpus, -1 included.
        """
        return self._texts.take(ids)

    def document_names(self, ids: IntArray) -> list[str]:
        """Titles or ids of documents; where they had none, the file's name and a number.

        Args:
            ids: Numbers of documents, ``(k,)``.

        Returns:
            Their names.

        Raises:
            IndexError: If there is no such document.
        """
        return self._names.take(ids)

    def chunk_of(self, ids: IntArray) -> IntArray:
        """The chunk of each sentence.

        Args:
            ids: Rows of the corpus, any shape.

        Returns:
            Numbers of chunks, of that shape.
        """
        return np.searchsorted(self.chunk_starts, ids, side="right").astype(np.int64) - 1

    def neighbours(self, centres: IntArray, *, left: int = 2, right: int = 2) -> IntArray:
        """The sentences around others: the contexts that these are the centres of.

        A document of one sentence has none: all are -1.

        Args:
            centres: Rows of the corpus, ``(k,)``.
            left: Sentences before.
            right: Sentences after.

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
        """Which sentences have another beside them, so that they are centres, ``(n,)``."""
        documents = np.asarray(self.documents)
        same = documents[1:] == documents[:-1]
        found: BoolArray = np.append(same, False) | np.append(False, same)
        return found

    def chunk_texts(self) -> Iterator[str]:
        """Reads all chunks in order, each as its sentences with a space between.

        A document of one sentence has no context to be found, so its chunk has no text.

        Yields:
            One text a chunk; no more than some thousand sentences are held at once.
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
