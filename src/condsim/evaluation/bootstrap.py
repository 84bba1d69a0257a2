"""Bootstrap intervals and p-values that resample whole sentence pairs.

The two rows of a sentence pair (its two conditions) share their sentences and were written
together, so they are not independent. Drawing single rows would treat them as if they were and
give intervals that are too narrow; so a resample here draws *sentence pairs* with replacement and
takes every row of each (the cluster bootstrap: Davison and Hinkley, Bootstrap Methods and their
Application, 1997, section 3.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError

__all__ = ["Statistic", "bootstrap", "p_value", "percentile_interval", "resample_weights"]

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Maps row weights ``(b, n)`` to values ``(..., b)``, one for each resample."""

BLOCK = 1 << 18  # weights held at once: 2 MiB of float64, so that a block stays in the cache


def resample_weights(
    clusters: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> Iterator[NDArray[np.float64]]:
    """Draws resamples of clusters as row weights, a block at a time.

    Args:
        clusters: The sentence pair each row belongs to, ``(n,)``; any integers.
        resamples: How many resamples to draw.
        seed: Seed of the draws; the same seed gives the same resamples.

    Yields:
        How often each resample holds each row, ``(b, n)`` float64; the b add up to ``resamples``.

    Raises:
        InputError: If there is no row or ``resamples`` is below 1.
    """
    if clusters.ndim != 1 or clusters.size == 0:
        raise InputError(f"A bootstrap needs at least one row. Got the shape {clusters.shape}.")
    if resamples < 1:
        raise InputError(f"The number of resamples must be at least 1. Got {resamples}.")
    generator = np.random.default_rng(seed)
    _, index = np.unique(clusters, return_inverse=True)
    groups = int(index.max()) + 1
    block = max(1, BLOCK // clusters.size)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = generator.integers(groups, size=(size, groups))
        drawn += np.arange(size)[:, None] * groups
        counts = np.bincount(drawn.ravel(), minlength=size * groups).reshape(size, groups)
        yield counts[:, index].astype(np.float64)


def bootstrap(
    statistic: Statistic, clusters: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> NDArray[np.float64]:
    """Evaluates a statistic on every resample.

    Args:
        statistic: The statistic, on blocks of row weights.
        clusters: The sentence pair each row belongs to, ``(n,)``.
        resamples: How many resamples to draw.
        seed: Seed of the draws.

    Returns:
        The values, ``(..., resamples)``; NaN where the statistic does not exist.

    Raises:
        InputError: If there is no row or ``resamples`` is below 1.
    """
    blocks = resample_weights(clusters, resamples=resamples, seed=seed)
    return np.concatenate([statistic(weights) for weights in blocks], axis=-1)


def percentile_interval(
    values: NDArray[np.float64], *, confidence: float = 0.95
) -> tuple[float, float]:
    """The percentile interval of a bootstrapped statistic.

    Args:
        values: The statistic on each resample, ``(resamples,)``; NaN ones are left out.
        confidence: The share of resamples within the interval, in (0, 1).

    Returns:
        The lower and the upper end; NaN and NaN if every value is NaN.

    Raises:
        InputError: If ``confidence`` is not in (0, 1).
    """
    if not 0 < confidence < 1:
        raise InputError(f"The confidence must be between 0 and 1. Got {confidence}.")
    finite = values[~np.isnan(values)]
    if finite.size == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def p_value(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of a paired bootstrap difference being zero.

    With d_1 .. d_B the differences of two scorers *on the same resamples*::

        p = min(1, 2 * (1 + min(#{d_b <= 0}, #{d_b >= 0})) / (B + 1))

    It is the percentile interval turned round: p < 0.05 when 0 lies outside the 95 % interval of
    the difference, up to the rounding of 1 / (B + 1). The 1 that is added on both sides keeps p
    above 0 (the sample itself counts as one resample), so the least p of 1000 resamples is 0.002.

    Args:
        differences: The difference on each resample, ``(resamples,)``; NaN ones are left out.

    Returns:
        The p-value in (0, 1]; NaN if every difference is NaN.

    Example:
        >>> round(p_value(np.full(1000, 0.3)), 4)
        0.002
    """
    finite = differences[~np.isnan(differences)]
    if finite.size == 0:
        return float("nan")
    fewer = min(int((finite <= 0).sum()), int((finite >= 0).sum()))
    return min(1.0, 2 * (1 + fewer) / (finite.size + 1))
