"""The same statistics over many resamples at once, as functions of integer row weights.

A resample that draws a row three times is the sample with that row weighted 3. So a block of
resamples is a matrix of weights ``(b, n)``, values are sorted once instead of once a resample, and
the average ranks of every resample come from one cumulative sum. With all weights 1 each function
here equals its namesake in :mod:`condsim.evaluation.correlation`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condsim.evaluation.correlation import NEGLIGIBLE

__all__ = ["ResampledRanks", "weighted_correlation", "weighted_mean"]

Float64Array = NDArray[np.float64]


class ResampledRanks:
    """Average ranks of a fixed vector within each of many resamples."""

    def __init__(self, values: Float64Array) -> None:
        """Sorts the values, once for all resamples.

        Args:
            values: Finite numbers, ``(n,)``.
        """
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        self._order = np.argsort(inverse, kind="stable")  # (n,)
        self._starts = np.cumsum(counts) - counts  # (unique,)
        self._inverse = inverse  # (n,)

    def __call__(self, weights: Float64Array) -> Float64Array:
        """Ranks the rows of each resample, less the mean rank.

        Args:
            weights: How often each resample holds each row, ``(b, n)``.

        Returns:
            Centred average ranks, ``(b, n)``. Rows of weight 0 get the rank they would have
            between their neighbours; they never count.
        """
        drawn = np.add.reduceat(weights[:, self._order], self._starts, axis=1)  # (b, unique)
        last = np.cumsum(drawn, axis=1)
        ranks = last - (drawn - 1.0) / 2
        # The mean of the average ranks of N draws is (N + 1) / 2, whatever the ties.
        ranks -= (last[:, -1:] + 1.0) / 2
        return np.asarray(ranks[:, self._inverse])


def weighted_correlation(x: Float64Array, y: Float64Array, weights: Float64Array) -> Float64Array:
    """Pearson correlation of each resample.

    Args:
        x: Values, ``(n,)`` or one row per resample, ``(b, n)``.
        y: Values, ``(n,)`` or ``(b, n)``.
        weights: How often each resample holds each row, ``(b, n)``.

    Returns:
        Correlations in [-1, 1], ``(b,)``; NaN where x or y is constant within the resample.
    """
    x, y = np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape)
    deviations_x = x - weighted_mean(x, weights)[:, None]
    deviations_y = y - weighted_mean(y, weights)[:, None]
    weighted_x = weights * deviations_x
    covariance = np.einsum("bn,bn->b", weighted_x, deviations_y)
    variance_x = np.einsum("bn,bn->b", weighted_x, deviations_x)
    variance_y = np.einsum("bn,bn,bn->b", weights, deviations_y, deviations_y)
    defined = _varies(x, variance_x, weights) & _varies(y, variance_y, weights)
    denominator = np.sqrt(np.where(defined, variance_x * variance_y, 1.0))
    return np.where(defined, np.clip(covariance / denominator, -1.0, 1.0), np.nan)


def weighted_mean(values: Float64Array, weights: Float64Array) -> Float64Array:
    """Mean of the values over the rows of each resample.

    Args:
        values: ``(n,)``, or one row per resample, ``(b, n)``.
        weights: How often each resample holds each row, ``(b, n)``.

    Returns:
        The means, ``(b,)``; NaN for a resample that holds no row.
    """
    total = weights.sum(axis=1)
    summed = np.einsum("bn,bn->b", weights, np.broadcast_to(values, weights.shape))
    return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)


def _varies(
    values: Float64Array, variance: Float64Array, weights: Float64Array
) -> NDArray[np.bool_]:
    """Whether each resample holds at least two different values, ``(b,)``."""
    size = np.einsum("bn,bn,bn->b", weights, values, values)
    return np.asarray(variance > NEGLIGIBLE * size)
