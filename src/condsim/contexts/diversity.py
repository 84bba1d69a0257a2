"""Choosing contexts one at a time, so that no two say the same (SSBC §3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.types import IntArray

__all__ = ["diverse"]

LIKENESS = 0.5
"""Jaccard similarity from which two left neighbours are too much alike."""


def diverse(
    chunks: IntArray, neighbours: Sequence[str], *, count: int, likeness: float = LIKENESS
) -> IntArray:
    """Picks contexts from the best down.

    A context is taken if its chunk has given none so far and the words of its left neighbour are
    less than ``likeness`` alike (Jaccard) to those of every one that was taken.

    Args:
        chunks: Chunk of each context, best context first, ``(k,)``.
        neighbours: The sentence to the left of each context; empty where there is none, which is
            like no other.
        count: How many to take at most.
        likeness: Jaccard similarity in (0, 1] from which two are too much alike.

    Returns:
        Places of those taken, in their order, ``(at most count,)``.
    """
    words, sizes = _word_matrix(neighbours)
    blocked = np.zeros(len(chunks), np.bool_)
    taken: list[int] = []
    for place in range(len(chunks)):
        if len(taken) == count:
            break
        if blocked[place]:
            continue
        taken.append(place)
        blocked |= chunks == chunks[place]
        if sizes[place]:
            shared = words @ words[place].toarray().ravel()
            union = sizes + sizes[place] - shared
            blocked |= shared >= likeness * union
    return np.array(taken, np.int64)


def _word_matrix(sentences: Sequence[str]) -> tuple[Any, NDArray[np.float32]]:
    """Which words each sentence has, ``(k, words)`` sparse, and how many, ``(k,)``."""
    from scipy import sparse

    numbers: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for sentence in sentences:
        distinct = set(sentence.casefold().split())
        columns.extend(numbers.setdefault(word, len(numbers)) for word in distinct)
        starts.append(len(columns))
    ones = np.ones(len(columns), np.float32)
    shape = (len(sentences), max(len(numbers), 1))
    matrix = sparse.csr_array((ones, columns, starts), shape=shape)
    return matrix, np.diff(starts).astype(np.float32)
