"""Shares of pairs and triplets that a scorer puts in the right order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError
from condsim.evaluation.statistics.resampling import Metric, ResampledRanks, bootstrap


def pair_wins(
    scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]
) -> NDArray[np.float64]:
    """1 where the higher-labelled row of a pair scores higher, 0.5 at a tie, else 0; ``(p,)``."""
    values = np.asarray(scores, dtype=np.float64)
    return (np.sign(values[high] - values[low]) + 1.0) / 2


def pair_accuracy(scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]) -> float:
    """Computes how often the higher-labelled row of a pair scores higher.

    Args:
        scores: Similarities, ``(n,)``.
        high: Row of the higher label of each pair, ``(p,)``.
        low: Row of the lower label of each pair, ``(p,)``.

    Returns:
        Share of the pairs, in [0, 1]; a tie counts one half. NaN without pairs.

    Example:
        >>> pair_accuracy([0.9, 0.2, 0.5, 0.5], high=np.array([0, 2]), low=np.array([1, 3]))
        0.75
    """
    wins = pair_wins(scores, high=high, low=low)
    return float(wins.mean()) if wins.size else float("nan")


def triplet_wins(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """1 where an anchor is nearer to its positive, else 0; ``(n,)`` from scores ``(2 n,)``.

    The pairs with the positives come first. Equal scores are wrong.
    """
    count = len(scores) // 2
    return (scores[:count] > scores[count:]).astype(np.float64)


def auroc(
    scores: NDArray[np.floating],
    positive: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Metric:
    """Computes the area under the ROC curve, with a bootstrap interval over clusters.

    The Mann-Whitney statistic: the share of (positive, negative) pairs of rows in which the
    positive row scores higher; a tie counts one half.

    Args:
        scores: Finite numbers, ``(n,)``.
        positive: Which rows are positive, ``(n,)``; both kinds must be there.
        clusters: The sentence pair each row belongs to, ``(n,)``.
        resamples: Number of bootstrap resamples.
        seed: Seed of the draws.

    Returns:
        The area, 0 to 1 (0.5 is chance), and its 95 % interval.

    Raises:
        InputError: If all rows are of one kind or ``resamples`` is below 1.
    """
    if positive.all() or not positive.any():
        raise InputError(
            f"AUROC needs rows of both kinds. Got {positive.size} rows, {int(positive.sum())} of "
            "them positive."
        )
    ranks = ResampledRanks(np.asarray(scores, np.float64))

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        drawn = weights * positive  # (b, n)
        ones, zeros = drawn.sum(axis=1), (weights * ~positive).sum(axis=1)
        both = ones * zeros
        # U = sum of the positive ranks - ones (ones + 1) / 2; with centred ranks, U - both / 2.
        above = np.einsum("bn,bn->b", drawn, ranks(weights))
        return np.where(both > 0, 0.5 + above / np.where(both > 0, both, 1.0), np.nan)

    value = statistic(np.ones((1, positive.size)))[0]
    return Metric.of(value, bootstrap(statistic, clusters, resamples=resamples, seed=seed))
