"""Means over the seeds of a run, and how sure they are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from condsim.evaluation import Metric


@dataclass(frozen=True)
class OverSeeds:
    """A figure over the seeds that are finished.

    Attributes:
        mean: The mean.
        std: The sample standard deviation; None with one seed.
        low: Lower end of the one seed's 95 % bootstrap interval; None with more seeds, or without.
        high: Upper end of it.
        values: The figure of each seed.
        planned: Number of seeds the row has; as many as values when all are finished.
    """

    mean: float
    std: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]
    planned: int


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % t-interval.

    Attributes:
        mean: The mean.
        low: Lower end; NaN with one value.
        high: Upper end; NaN with one value.
    """

    mean: float
    low: float
    high: float


def over_seeds(figures: Sequence[Metric], *, planned: int) -> OverSeeds | None:
    """Sums up a figure over seeds.

    Args:
        figures: The figure of each finished seed.
        planned: Number of seeds there are to be.

    Returns:
        The summary; None without a finished seed, or where a figure does not exist (NaN).
    """
    values = tuple(figure.value for figure in figures)
    if not values or any(math.isnan(value) for value in values):
        return None
    alone = figures[0] if len(figures) == 1 and not math.isnan(figures[0].low) else None
    return OverSeeds(
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 else None,
        low=alone.low if alone else None,
        high=alone.high if alone else None,
        values=values,
        planned=planned,
    )


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of independent values with its 95 % t-interval, ``mean ± t * s / sqrt(n)``.

    Args:
        values: One value or more.

    Returns:
        The interval, NaN at both ends for one value.

    Example:
        >>> interval = mean_interval([1.0, 2.0, 3.0])
        >>> round(interval.low, 3), round(interval.high, 3)
        (-0.484, 4.484)
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, math.nan, math.nan)
    half = t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def t_quantile(freedom: int, *, confidence: float = 0.95) -> float:
    """The two-sided quantile of Student's t: P(|T| <= q) = confidence.

    Found by halving on the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4, so that a
    finished table needs no scipy.

    Args:
        freedom: Degrees of freedom, at least 1.
        confidence: A probability in (0, 1).

    Returns:
        The quantile.

    Example:
        >>> round(t_quantile(2), 3)
        4.303
    """
    low, high = 0.0, 1.0
    while _central(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        below = _central(middle, freedom) < confidence
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def _central(t: float, freedom: int) -> float:
    """P(|T| <= t)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for index in range(odd + 1, freedom, 2):  # the terms of the sum and the factor to the next
        total += term
        term *= math.cos(angle) ** 2 * index / (index + 1)
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
