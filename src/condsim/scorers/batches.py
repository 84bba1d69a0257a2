"""Texts of like length together, as many as make up a number of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from condsim.types import IntArray

__all__ = ["token_batches"]


def token_batches(lengths: IntArray, *, tokens: int) -> Iterator[IntArray]:
    """Cuts texts, sorted by length, into batches of at most ``tokens`` tokens.

    Args:
        lengths: Tokens of each text, (n,).
        tokens: Most tokens of a batch once its texts are padded to the longest, 1 or more.

    Yields:
        Places of the texts of one batch, shortest first; a text that is longer than the limit is
        alone.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= tokens:
            stop += 1
        yield order[start:stop]
        start = stop
