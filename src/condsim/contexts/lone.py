"""Documents of one sentence, such as captions of photographs: no contexts, but pairs to harvest.

They are in no chunk that is found, since there is no context in them. So they have an index of
their own, from which the drawing of pairs takes sentences that are alike; the paper has no such.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from condsim.contexts.retrieval import TfidfIndex
from condsim.contexts.selection import Places
from condsim.types import IntArray

__all__ = ["LoneSentences", "build_lone_index", "lone_rows", "open_lone_index"]

_FOLDER = "lone"
_BLOCK = 10_000  # sentences read at once


class LoneSentences:
    """What an index of them is built of: each is a chunk of its own.

    Attributes:
        revision: That of the corpus.
    """

    def __init__(self, corpus: Places) -> None:
        """Finds them.

        Args:
            corpus: The corpus.
        """
        self.revision = corpus.revision
        self._corpus = corpus
        self._rows = lone_rows(corpus)

    def __len__(self) -> int:
        """Number of documents of one sentence."""
        return len(self._rows)

    def chunk_texts(self) -> Iterator[str]:
        """Reads them.

        Yields:
            One text a document.
        """
        for start in range(0, len(self._rows), _BLOCK):
            yield from self._corpus.sentences(self._rows[start : start + _BLOCK])


def lone_rows(corpus: Places) -> IntArray:
    """Finds the documents of one sentence.

    Args:
        corpus: The corpus.

    Returns:
        Their rows; that of chunk i of `LoneSentences` is the i-th, ``(k,)``.
    """
    return np.flatnonzero(~corpus.has_context)


def build_lone_index(corpus: Places, index: Path, *, min_df: int) -> TfidfIndex | None:
    """Builds their index, or opens it where it is built already.

    Args:
        corpus: The corpus.
        index: Folder of the index of its chunks; theirs is in it.
        min_df: Fewest of them that a term is in; terms of fewer are left out.

    Returns:
        The index; None if there are less than two.

    Raises:
        InputError: If the folder holds something else or cannot be written.
    """
    texts = LoneSentences(corpus)
    if len(texts) < 2:
        return None
    return TfidfIndex.build(texts, index / _FOLDER, min_df=min_df, may_be_empty=True)


def open_lone_index(corpus: Places, index: Path) -> TfidfIndex | None:
    """Opens their index.

    Args:
        corpus: The corpus.
        index: Folder of the index of its chunks.

    Returns:
        The index; None if there are less than two.

    Raises:
        InputError: If it is not there, or is damaged.
    """
    return TfidfIndex.open(index / _FOLDER) if len(lone_rows(corpus)) > 1 else None
