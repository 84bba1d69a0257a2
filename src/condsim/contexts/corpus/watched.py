"""A corpus that tells how far it has been read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.corpus.stored import Corpus
from condsim.types import IntArray

_CHUNKS = 1_000  # between two calls


class Watched:
    """What learning a vocabulary and building an index read of a corpus, in order and once.

    Attributes:
        revision: That of the corpus.
        documents: Document of each sentence, ``(n,)``.
    """

    def __init__(self, corpus: Corpus, progress: Callable[[int, int], None]) -> None:
        self.revision = corpus.revision
        self.documents: NDArray[np.int32] = corpus.documents
        self._corpus, self._progress = corpus, progress

    def __len__(self) -> int:
        return len(self._corpus)

    def sentences(self, ids: IntArray) -> list[str]:
        """Reads sentences; see `condsim.contexts.corpus.preparing.Corpus`.

        Args:
            ids: Rows of the corpus, rising, ``(k,)``.
        """
        texts = self._corpus.sentences(ids)
        if len(ids):
            self._progress(int(ids[-1]) + 1, len(self))
        return texts

    def neighbours(self, centres: IntArray, *, left: int = 2, right: int = 2) -> IntArray:
        """The sentences around others; see `condsim.contexts.corpus.preparing.Corpus`.

        Args:
            centres: Rows of the corpus, ``(k,)``.

        Returns:
            Rows, ``(k, left + right)``; -1 where the document ends.
        """
        return self._corpus.neighbours(centres, left=left, right=right)

    def chunk_texts(self) -> Iterator[str]:
        """Reads all chunks."""
        chunks = len(self._corpus.chunk_starts) - 1
        for number, text in enumerate(self._corpus.chunk_texts(), start=1):
            yield text
            if number % _CHUNKS == 0 or number == chunks:
                self._progress(number, chunks)
