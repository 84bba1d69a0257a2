"""Correlations of two vectors, and the cluster bootstrap of statistics.

A resample that draws a row three times is the sample with that row weighted 3. So a block of
resamples is a matrix of weights (b, n), values are sorted once instead of once per resample, and
the average ranks of every resample come from one cumulative sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BeforeValidator, Field

from condsim.errors import InputError, check_at_least
from condsim.types import Float64Array

# Rounding leaves about 1e-15 where the exact variance is 0. A smaller share of the variance than
# this counts as 0, so that noise is never reported as a correlation.
NEGLIGIBLE = 1e-12

Statistic = Callable[[Float64Array], Float64Array]
"""Maps row weights ``(b, n)`` to values ``(..., b)``, one for each resample."""

Number = Annotated[
    float,
    Field(allow_inf_nan=True),
    BeforeValidator(lambda value: math.nan if value is None else value),
]
"""A number that may be NaN, which is null in JSON."""

# A block of 2 MiB of float64 stays in the processor's cache.
WEIGHTS_PER_BLOCK = 1 << 18


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Spearman's rank correlation of finite numbers, ``(n,)`` each, in [-1, 1].

    It is NaN if x or y is constant or n < 2.

    Example:
        >>> round(spearman([1, 2, 3], [1, 2, 2]), 4)
        0.866
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    is_vector = first.ndim == 1 and first.shape == second.shape
    if not (is_vector and np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError(
            "A correlation needs two one-dimensional arrays of finite numbers, of one length; got "
            f"the shapes {first.shape} and {second.shape}."
        )
    if first.size < 2:
        return float("nan")
    weights = np.ones((1, first.size))
    ranks = ResampledRanks(first)(weights), ResampledRanks(second)(weights)
    return float(weighted_correlation(*ranks, weights)[0])


def partial_correlation(xy: Float64Array, xz: Float64Array, yz: Float64Array) -> Float64Array:
    """Compute ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2))``, the correlation given z.

    A constant z (NaN) explains nothing; if z explains x or y in full, the result is NaN.
    """
    xz, yz = np.nan_to_num(xz), np.nan_to_num(yz)
    unexplained_x, unexplained_y = 1.0 - np.square(xz), 1.0 - np.square(yz)
    defined = (unexplained_x > NEGLIGIBLE) & (unexplained_y > NEGLIGIBLE)
    denominator = np.sqrt(np.where(defined, unexplained_x * unexplained_y, 1.0))
    partial = np.clip((xy - xz * yz) / denominator, -1.0, 1.0)
    return np.where(defined, partial, np.nan)


def resample_weights(
    clusters: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> Iterator[Float64Array]:
    """Draw resamples of clusters ``(n,)`` as row weights, in blocks of ``(b, n)``."""
    check_at_least(1, resamples=resamples)
    generator = np.random.default_rng(seed)
    _, index = np.unique(clusters, return_inverse=True)
    groups = int(index.max()) + 1
    block = max(1, WEIGHTS_PER_BLOCK // clusters.size)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = generator.integers(groups, size=(size, groups))
        drawn += np.arange(size)[:, None] * groups
        counts = np.bincount(drawn.ravel(), minlength=size * groups).reshape(size, groups)
        yield counts[:, index].astype(np.float64)


def bootstrap(
    statistic: Statistic, clusters: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> Float64Array:
    """Evaluate a statistic on resamples of whole clusters, ``(n,)``; ``(..., resamples)``.

    The values are NaN where the statistic does not exist.
    """
    blocks = resample_weights(clusters, resamples=resamples, seed=seed)
    return np.concatenate([statistic(weights) for weights in blocks], axis=-1)


def percentile_interval(value: float, draws: Float64Array) -> tuple[float, float]:
    """Return the ends of the 95 % percentile interval of draws ``(resamples,)``, ignoring NaN.

    It contains the value itself: labels with many ties bias rank correlations on resamples, so that
    the percentiles alone may leave it out.
    """
    finite = draws[~np.isnan(draws)]
    if finite.size == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [0.025, 0.975])
    return min(float(low), value), max(float(high), value)


def p_value(differences: Float64Array) -> float:
    """Compute the two-sided p-value of a paired bootstrap difference.

    With d_1 .. d_B the differences of two scorers *on the same resamples*::

        p = min(1, 2 * (1 + min(#{d_b <= 0}, #{d_b >= 0})) / (B + 1))

    This inverts the percentile interval: p < 0.05 when 0 lies outside the 95 % interval of the
    difference, up to the rounding of 1 / (B + 1). The added 1 counts the sample itself as a
    resample and keeps p above 0: with 1000 resamples the smallest p is 0.002. NaN is ignored, and
    the result NaN if every difference is.
    """
    finite = differences[~np.isnan(differences)]
    if finite.size == 0:
        return float("nan")
    fewer = min(int((finite <= 0).sum()), int((finite >= 0).sum()))
    return min(1.0, 2 * (1 + fewer) / (finite.size + 1))


@dataclass(frozen=True)
class Metric:
    """A value with its 95 % bootstrap interval; NaN where there is none (constant scores)."""

    value: Number
    low: Number
    high: Number

    @classmethod
    def of(cls, value: float, draws: Float64Array) -> Self:
        """Join a value and its draws on the resamples, ``(resamples,)``, if any."""
        return cls(float(value), *percentile_interval(float(value), draws))

    @classmethod
    def bootstrapped(
        cls, statistic: Statistic, clusters: NDArray[np.int64], *, resamples: int, seed: int
    ) -> Self:
        """Evaluate a statistic on the rows and on resamples; see `bootstrap`."""
        draws = bootstrap(statistic, clusters, resamples=resamples, seed=seed)
        return cls.of(statistic(np.ones((1, clusters.size)))[0], draws)


@dataclass(frozen=True)
class Difference:
    """The difference of a metric between two models, with its 95 % paired bootstrap interval.

    The p-value of no difference is two-sided; see `p_value`. NaN where there is no difference.
    """

    value: Number
    low: Number
    high: Number
    p_value: Number

    @classmethod
    def of(cls, value: float, draws: Float64Array) -> Self:
        """Join a difference and its draws on the resamples, ``(resamples,)``."""
        return cls(float(value), *percentile_interval(float(value), draws), p_value(draws))


class ResampledRanks:
    """Average ranks of a fixed vector ``(n,)`` within each of many resamples."""

    def __init__(self, values: Float64Array) -> None:
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        self._order = np.argsort(inverse, kind="stable")  # (n,)
        self._starts = np.cumsum(counts) - counts  # (unique,)
        self._inverse = inverse  # (n,)

    def __call__(self, weights: Float64Array) -> Float64Array:
        """Rank the rows of each resample, less the mean rank, ``(b, n)``."""
        # Rows of weight 0 get the rank they would have between their neighbors; they never count.
        drawn = np.add.reduceat(weights[:, self._order], self._starts, axis=1)  # (b, unique)
        last = np.cumsum(drawn, axis=1)
        ranks = last - (drawn - 1.0) / 2
        # The mean of the average ranks of N draws is (N + 1) / 2, whatever the ties.
        ranks -= (last[:, -1:] + 1.0) / 2
        return np.asarray(ranks[:, self._inverse])


def weighted_correlation(x: Float64Array, y: Float64Array, weights: Float64Array) -> Float64Array:
    """Correlate x and y, (n,) or (b, n), on each resample, (b,); NaN if one is constant."""
    x, y = np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape)
    deviations_x = x - weighted_mean(x, weights)[:, None]
    deviations_y = y - weighted_mean(y, weights)[:, None]
    weighted_x = weights * deviations_x
    covariance = np.einsum("bn,bn->b", weighted_x, deviations_y)
    variance_x = np.einsum("bn,bn->b", weighted_x, deviations_x)
    variance_y = np.einsum("bn,bn,bn->b", weights, deviations_y, deviations_y)
    # Resamples with at least two different values, (b,).
    defined = variance_x > NEGLIGIBLE * np.einsum("bn,bn,bn->b", weights, x, x)
    defined &= variance_y > NEGLIGIBLE * np.einsum("bn,bn,bn->b", weights, y, y)
    denominator = np.sqrt(np.where(defined, variance_x * variance_y, 1.0))
    return np.where(defined, np.clip(covariance / denominator, -1.0, 1.0), np.nan)


def weighted_mean(values: Float64Array, weights: Float64Array) -> Float64Array:
    """Average values ``(n,)`` or ``(b, n)`` on each resample, ``(b,)``; NaN if it is empty."""
    total = weights.sum(axis=1)
    summed = np.einsum("bn,bn->b", weights, np.broadcast_to(values, weights.shape))
    return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)
