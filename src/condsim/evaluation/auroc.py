"""AUROC: how often a row of one kind is scored above a row of the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.evaluation.bootstrap import bootstrap, percentile_interval
from condsim.evaluation.report import Metric
from condsim.evaluation.resampled import ResampledRanks

__all__ = ["auroc"]


def auroc(
    scores: NDArray[np.floating],
    positive: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Metric:
    """Area under the ROC curve, with a bootstrap interval over clusters.

    It is the Mann-Whitney statistic: the share of (positive, negative) pairs of rows in which the
    positive row has the higher score, ties counted half.

    Args:
        scores: Finite numbers, ``(n,)``.
        positive: Which rows are positive, ``(n,)``; at least one is and one is not.
        clusters: The sentence pair each row belongs to, ``(n,)``.
        resamples: How many bootstrap resamples to draw.
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
    drawn = bootstrap(statistic, clusters, resamples=resamples, seed=seed)
    return Metric(float(value), *percentile_interval(drawn))
