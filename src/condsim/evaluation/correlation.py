"""Spearman, Pearson and partial Spearman correlation, and the mean squared error, in numpy.

Everything is computed in float64. A correlation with a constant argument does not exist: it is NaN
here, with no warning, and the tables show it as a dash.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError

__all__ = [
    "average_ranks",
    "mean_squared_error",
    "partial_correlation",
    "partial_spearman",
    "pearson",
    "spearman",
]

# Rounding leaves about 1e-15 where the exact variance is 0; a share of the variance smaller than
# this is taken to be 0, so that noise is never reported as a correlation.
NEGLIGIBLE = 1e-12


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks values from 1; equal values share the mean of their ranks.

    Args:
        values: Finite numbers, ``(n,)``.

    Returns:
        The ranks, ``(n,)``, in [1, n].

    Example:
        >>> average_ranks([0.5, 0.1, 0.5]).tolist()
        [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(_vector(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared = last - (counts - 1) / 2
    return shared[inverse].astype(np.float64)


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's product-moment correlation.

    Args:
        x: Finite numbers, ``(n,)``.
        y: Finite numbers, ``(n,)``.

    Returns:
        The correlation in [-1, 1]; NaN if x or y is constant or n < 2.

    Raises:
        InputError: If the two are not one-dimensional, of one length and finite.

    Example:
        >>> round(pearson([1, 2, 3], [1, 2, 4]), 4)
        0.982
    """
    first, second = _same_length(x, y)
    if first.size < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    # Dividing by the largest deviation first keeps the squares of tiny or huge values in range.
    first, second = _unit_deviations(first), _unit_deviations(second)
    denominator = np.sqrt(np.square(first).sum() * np.square(second).sum())
    return float(np.clip((first * second).sum() / denominator, -1.0, 1.0))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's on average ranks (ties share their mean rank).

    Args:
        x: Finite numbers, ``(n,)``.
        y: Finite numbers, ``(n,)``.

    Returns:
        The correlation in [-1, 1]; NaN if x or y is constant or n < 2.

    Raises:
        InputError: If the two are not one-dimensional, of one length and finite.

    Example:
        >>> spearman([0.1, 0.2, 0.9], [1, 2, 3])
        1.0
    """
    first, second = _same_length(x, y)
    return pearson(average_ranks(first), average_ranks(second))


def partial_spearman(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> float:
    """Spearman of x and y once the ranks of ``given`` are regressed out of the ranks of both.

    It is what x still says about y for those who know ``given`` already. A constant ``given``
    explains nothing: the result is then the plain Spearman.

    Args:
        x: Finite numbers, ``(n,)``.
        y: Finite numbers, ``(n,)``.
        given: Finite numbers to hold fixed, ``(n,)``.

    Returns:
        The partial correlation in [-1, 1]; NaN if x or y is constant, or is fully explained by
        ``given`` (the same order, or its mirror).

    Raises:
        InputError: If the three are not one-dimensional, of one length and finite.
    """
    first, second = _same_length(x, y)
    _, third = _same_length(x, given)
    partial = partial_correlation(
        np.float64(spearman(first, second)),
        np.float64(spearman(first, third)),
        np.float64(spearman(second, third)),
    )
    return float(partial)


def partial_correlation(
    xy: NDArray[np.float64] | np.float64,
    xz: NDArray[np.float64] | np.float64,
    yz: NDArray[np.float64] | np.float64,
) -> NDArray[np.float64]:
    """First-order partial correlation of x and y given z from their three correlations.

    ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2))``, which equals the correlation of the
    residuals of x and y after a linear regression of each on z.

    Args:
        xy: Correlations of x and y, any shape.
        xz: Correlations of x and z; NaN (a constant z) counts as 0.
        yz: Correlations of y and z; NaN (a constant z) counts as 0.

    Returns:
        The partial correlations in [-1, 1]; NaN where nothing of x or of y is left.
    """
    xz, yz = np.nan_to_num(xz), np.nan_to_num(yz)
    left_x, left_y = 1.0 - np.square(xz), 1.0 - np.square(yz)
    defined = (left_x > NEGLIGIBLE) & (left_y > NEGLIGIBLE)
    denominator = np.sqrt(np.where(defined, left_x * left_y, 1.0))
    partial = np.clip((xy - xz * yz) / denominator, -1.0, 1.0)
    return np.where(defined, partial, np.nan)


def mean_squared_error(scores: ArrayLike, gold: ArrayLike) -> float:
    """Mean of the squared differences; lower is better.

    Args:
        scores: Predicted similarities, ``(n,)``.
        gold: Gold similarities on the same scale, ``(n,)``.

    Returns:
        The error, >= 0; NaN if n is 0.

    Raises:
        InputError: If the two are not one-dimensional, of one length and finite.
    """
    first, second = _same_length(scores, gold)
    if first.size == 0:
        return float("nan")
    return float(np.mean(np.square(first - second)))


def _unit_deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Deviations from the mean, divided by the largest of them; the values must differ."""
    deviations = values - values.mean()
    return np.asarray(deviations / np.abs(deviations).max())


def _vector(values: ArrayLike) -> NDArray[np.float64]:
    """The values as a checked float64 vector."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise InputError(f"Values must be one-dimensional, (n,). Got the shape {vector.shape}.")
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(
            f"Values must be finite. Got {vector[row]} at index {row}; leave such rows out first."
        )
    return vector


def _same_length(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both as checked vectors of one length."""
    first, second = _vector(x), _vector(y)
    if first.size != second.size:
        raise InputError(
            f"The two must have one length. Got {first.size} and {second.size} values."
        )
    return first, second
