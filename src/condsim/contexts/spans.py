"""Rows of several runs of an array, one run after the other."""

from __future__ import annotations

import numpy as np

from condsim.types import IntArray

__all__ = ["spans"]


def spans(starts: IntArray, lengths: IntArray) -> IntArray:
    """Lists the rows of several runs.

    Args:
        starts: First row of each run, ``(u,)``.
        lengths: Rows of each, ``(u,)``.

    Returns:
        All rows, those of the first run first, ``(t,)``.
    """
    ends = np.cumsum(lengths)
    rows: IntArray = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    return rows
