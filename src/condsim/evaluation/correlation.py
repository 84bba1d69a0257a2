"""Correlations of two vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError

# Rounding leaves about 1e-15 where the exact variance is 0. A smaller share of the variance than
# this counts as 0, so that noise is never reported as a correlation.
NEGLIGIBLE = 1e-12


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Pearson's correlation of finite numbers, ``(n,)`` each, in [-1, 1].

    It is NaN if x or y is constant or n < 2.

    Example:
        >>> round(pearson([1, 2, 3], [1, 2, 4]), 4)
        0.982
    """
    first, second = _checked_vectors(x, y)
    if first.size < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    # Dividing by the largest deviation first keeps the squares of tiny or huge values in range.
    first, second = first - first.mean(), second - second.mean()
    first, second = first / np.abs(first).max(), second / np.abs(second).max()
    denominator = np.sqrt(np.square(first).sum() * np.square(second).sum())
    return float(np.clip((first * second).sum() / denominator, -1.0, 1.0))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Spearman's rank correlation: Pearson's on average ranks, and NaN like it."""
    first, second = _checked_vectors(x, y)
    return pearson(average_ranks(first), average_ranks(second))


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Rank values ``(n,)`` from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared = last - (counts - 1) / 2
    return shared[inverse].astype(np.float64)


def partial_correlation(
    xy: NDArray[np.float64] | np.float64,
    xz: NDArray[np.float64] | np.float64,
    yz: NDArray[np.float64] | np.float64,
) -> NDArray[np.float64]:
    """Compute ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2))``, the correlation given z.

    A constant z (NaN) explains nothing; if z explains x or y in full, the result is NaN.
    """
    xz, yz = np.nan_to_num(xz), np.nan_to_num(yz)
    unexplained_x, unexplained_y = 1.0 - np.square(xz), 1.0 - np.square(yz)
    defined = (unexplained_x > NEGLIGIBLE) & (unexplained_y > NEGLIGIBLE)
    denominator = np.sqrt(np.where(defined, unexplained_x * unexplained_y, 1.0))
    partial = np.clip((xy - xz * yz) / denominator, -1.0, 1.0)
    return np.where(defined, partial, np.nan)


def _checked_vectors(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            "A correlation needs two one-dimensional arrays of one length; got the shapes "
            f"{first.shape} and {second.shape}."
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("A correlation needs finite values; got NaN or infinity.")
    return first, second
