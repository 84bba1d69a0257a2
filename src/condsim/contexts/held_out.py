"""Which documents no contextual model is trained on; the same for all of them."""

from __future__ import annotations

import numpy as np

from condsim.contexts.corpus_settings import HOW_TO_SPLIT
from condsim.contexts.vocabulary import SentenceCorpus
from condsim.errors import InputError
from condsim.types import BoolArray, IntArray

__all__ = ["document_starts", "held_out_documents"]


def document_starts(corpus: SentenceCorpus) -> IntArray:
    """Finds where documents begin.

    Args:
        corpus: The corpus.

    Returns:
        First sentence of each document, and n, ``(documents + 1,)``.

    Raises:
        InputError: If the corpus has no sentence.
    """
    if not len(corpus):
        raise InputError("The corpus has no sentence; there is nothing to train on.")
    documents = np.asarray(corpus.documents)
    inner = np.flatnonzero(documents[1:] != documents[:-1]) + 1
    return np.concatenate([[0], inner, [len(documents)]]).astype(np.int64)


def held_out_documents(starts: IntArray, *, share: float, seed: int) -> BoolArray:
    """Draws the documents that no contextual model is trained on.

    Documents of one sentence have no context, so they are never drawn.

    Args:
        starts: As :func:`document_starts` found them.
        share: Share of the documents with a context, (0, 1); one at least is drawn.
        seed: The same seed draws the same documents for every model.

    Returns:
        Which documents are held out, ``(documents,)``.

    Raises:
        InputError: If fewer than two documents have two sentences, or the share is out of range.
    """
    if not 0 < share < 1:
        raise InputError(f"The held-out share must be above 0 and below 1. Got {share}.")
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
