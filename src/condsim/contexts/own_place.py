"""Where a sentence itself stands in the corpus: contexts from there would know it by heart.

A sentence of the corpus shares all its words with its own chunk, so retrieval finds that first. Its
own context is the one it was written in, and those of its neighbours hold it word for word. In them
it would be far more probable than in any other, and a cosine over a few contexts would follow that
one. A sentence from elsewhere has no such context, so a surrogate would learn one score from the
harvest and be judged by another. The paper does not say what it does about this.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from condsim.contexts.corpus_sentences import near_duplicate_key
from condsim.contexts.spans import spans
from condsim.types import BoolArray, IntArray

__all__ = ["NEAR", "chunk_rows", "far_from", "own_rows"]

NEAR = 10
"""Sentences on each side of a sentence whose contexts are not asked about it."""

_CHUNKS = 100  # the best chunks in which it is looked for


class Rows(Protocol):
    """What is asked of a corpus."""

    @property
    def chunk_starts(self) -> IntArray:
        """First sentence of each chunk, and the number of sentences, ``(m + 1,)``."""

    def sentences(self, ids: IntArray) -> list[str]:
        """Texts of sentences."""


def own_rows(sentence: str, chunks: IntArray, corpus: Rows) -> IntArray:
    """Looks for a sentence in the chunks most like it.

    Args:
        sentence: The sentence; case, punctuation and digits do not count.
        chunks: Chunks of the corpus, best first; the first hundred are read.
        corpus: The corpus.

    Returns:
        Rows of the corpus where it stands, ``(k,)``; none if it is from elsewhere.
    """
    rows = chunk_rows(chunks[:_CHUNKS], corpus)
    key = near_duplicate_key(sentence)
    found = [near_duplicate_key(text) == key for text in corpus.sentences(rows)]
    return rows[np.array(found, dtype=np.bool_)]


def chunk_rows(chunks: IntArray, corpus: Rows) -> IntArray:
    """Lists the sentences of chunks.

    Args:
        chunks: Chunks of the corpus, in any order.
        corpus: The corpus.

    Returns:
        Their rows, those of the first chunk first, ``(k,)``.
    """
    starts = corpus.chunk_starts
    return spans(starts[chunks], starts[chunks + 1] - starts[chunks])


def far_from(own: IntArray, centres: IntArray) -> BoolArray:
    """Tells which contexts do not come from where a sentence stands.

    Args:
        own: Rows where the sentence stands, ``(k,)``.
        centres: Centres of contexts, ``(n,)``.

    Returns:
        Which centres are more than ten sentences away from all of them, ``(n,)``.
    """
    apart = np.abs(centres[:, None] - own)  # (n, k)
    far: BoolArray = (apart > NEAR).all(axis=1)
    return far
