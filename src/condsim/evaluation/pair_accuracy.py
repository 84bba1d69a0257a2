"""Pair accuracy: does the condition under which a pair is more alike score higher?

The two rows of a sentence pair have the same sentences, so a scorer that ignores the condition
gets exactly one half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["pair_accuracy", "pair_wins"]


def pair_wins(
    scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Says of each pair whether its higher-labelled row scores higher.

    Args:
        scores: Similarities, ``(n,)``.
        high: Row of the higher label of each pair, ``(p,)``.
        low: Row of the lower label of each pair, ``(p,)``.

    Returns:
        1 where the higher-labelled row scores higher, 0.5 where both score the same, else 0;
        ``(p,)``.
    """
    values = np.asarray(scores, dtype=np.float64)
    return (np.sign(values[high] - values[low]) + 1.0) / 2


def pair_accuracy(scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]) -> float:
    """Of the pairs whose two labels differ, how often the higher-labelled row scores higher.

    Args:
        scores: Similarities, ``(n,)``.
        high: Row of the higher label of each pair, ``(p,)``.
        low: Row of the lower label of each pair, ``(p,)``.

    Returns:
        The share of pairs in order, in [0, 1], equal scores counting one half; NaN without pairs.

    Example:
        >>> pair_accuracy([0.9, 0.2, 0.5, 0.5], high=np.array([0, 2]), low=np.array([1, 3]))
        0.75
    """
    wins = pair_wins(scores, high=high, low=low)
    return float(wins.mean()) if wins.size else float("nan")
