"""Calibration: a monotone map from raw similarities to scores in [0, 1], where 0.5 is Likert 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from condsim.errors import InputError, ModelError, check_at_least, one_line
from condsim.types import Float64Array, FloatArray

# A straight line is mixed into a fitted map, so that no stretch of it is flat.
_LINEAR_SHARE = 0.02
# Lowest slope between two knots, as a share of the slope of a straight line through all rows.
_MIN_SLOPE_SHARE = 0.25


@dataclass(frozen=True)
class Calibration:
    """A strictly increasing piecewise linear map, which keeps ranks.

    Attributes:
        raw: Knots on the raw scale (a cosine: from -1 to 1), strictly increasing, two or more.
        score: The score of each knot, strictly increasing, in [0, 1]. Raw values beyond the first
            and last knot get the first and last score.
    """

    raw: tuple[float, ...]
    score: tuple[float, ...]

    def __post_init__(self) -> None:
        raw, score = np.array(self.raw, np.float64), np.array(self.score, np.float64)
        is_valid = raw.size == score.size > 1 and np.isfinite([raw, score]).all()
        if not is_valid or not (np.diff([raw, score]) > 0).all() or score[0] < 0 or score[-1] > 1:
            raise ModelError(
                "A calibration must have two or more increasing finite numbers under 'raw', and as "
                f"many in [0, 1] under 'score'; got {list(self.raw)} and {list(self.score)}."
            )

    def apply(self, raw: ArrayLike) -> FloatArray:
        """Map raw similarities of any shape to scores in [0, 1], float32 of the same shape."""
        return np.interp(np.asarray(raw, np.float64), self.raw, self.score).astype(np.float32)

    def lowest_raw(self, score: float) -> float:
        """Find the lowest raw similarity between the outer knots that has at least a score.

        The score is rounded to float32, as scores are, and the result exact to the last bit of a
        float64; infinity if there is none.
        """
        low, high, threshold = self.raw[0], self.raw[-1], np.float32(score)
        if self.apply(high) < threshold:
            return float("inf")
        if self.apply(low) >= threshold:
            return low
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if self.apply(middle) >= threshold else (middle, high)
        return high

    def to_dict(self) -> dict[str, list[float]]:
        """Convert to the form in ``condsim.json``."""
        return {"raw": list(self.raw), "score": list(self.score)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Calibration:
        """Read the form in ``condsim.json``; ModelError if it is damaged."""
        message = "A calibration must have lists of numbers under 'raw' and 'score'"
        with one_line(message, KeyError, TypeError, OverflowError, kind=ModelError):
            raw, score = ([0.0 + value for value in content[key]] for key in ("raw", "score"))
        return cls(tuple(raw), tuple(score))


UNCALIBRATED = Calibration(raw=(-1.0, 0.0, 1.0), score=(0.0, 0.001, 1.0))
"""For models without a calibration: the cosine itself, all negative ones near 0."""


def fit_calibration(raw: ArrayLike, gold: ArrayLike, *, knots: int = 16) -> Calibration:
    """Fit a calibration: isotonic regression with a lowest slope, on equally filled bins.

    The map through the mean labels of the bins is the least-squares one that rises everywhere by at
    least a quarter of the slope of a straight line through all rows, so that it has no plateau. It
    is linear between the bins. The ends are tied to raw -1 and 1 (or beyond, where the data go
    beyond).

    Args:
        raw: Raw similarities, ``(n,)``; a cosine, or anything finite.
        gold: Gold similarities in [0, 1], ``(n,)``.
        knots: Bins, at least 1.

    Returns:
        A strictly increasing map from about 0 to about 1.

    Raises:
        InputError: If there are no rows, the lengths differ, a value is not finite or a gold value
            is outside [0, 1].
    """
    x, y = np.asarray(raw, np.float64), np.asarray(gold, np.float64)
    has_rows = x.ndim == 1 and x.shape == y.shape and x.size > 0
    if not has_rows or not np.isfinite(x).all() or not ((y >= 0) & (y <= 1)).all():
        raise InputError(
            "A calibration needs rows with one finite raw similarity and a gold one in [0, 1] "
            f"each; got the shapes {x.shape} and {y.shape}."
        )
    check_at_least(1, knots=knots)
    low = -1.0 if x.min() >= -1 else float(x.min()) - 1.0
    high = 1.0 if x.max() <= 1 else float(x.max()) + 1.0
    centers, means, counts = _bins(x, y, knots)
    floor = _MIN_SLOPE_SHARE * max(0.0, _slope(centers, means, counts)) * centers
    means = np.clip(_isotonic(means - floor, counts) + floor, 0, 1)
    # A bin at an end has the score of the end.
    inner = (low < centers) & (centers < high)
    centers = np.concatenate([[low], centers[inner], [high]])
    scores = np.concatenate([[0.0], means[inner], [1.0]])
    scores = (1 - _LINEAR_SHARE) * scores + _LINEAR_SHARE * (centers - low) / (high - low)
    return Calibration(tuple(centers.tolist()), tuple(scores.tolist()))


def _bins(
    x: Float64Array, y: Float64Array, knots: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Means of x and y and row counts of at most ``knots`` equally filled bins."""
    # Equal x share a bin.
    edges = np.unique(np.quantile(x, np.arange(1, knots) / knots))
    bin_of = np.searchsorted(edges, x, side="right")
    counts = np.bincount(bin_of).astype(np.float64)
    filled = counts > 0
    sums_x, sums_y = np.bincount(bin_of, weights=x), np.bincount(bin_of, weights=y)
    counts = counts[filled]
    return sums_x[filled] / counts, sums_y[filled] / counts, counts


def _slope(x: Float64Array, y: Float64Array, counts: Float64Array) -> float:
    """Slope of the weighted least-squares line; 0 where all x are equal."""
    centerd = x - np.average(x, weights=counts)
    spread = float(counts @ centerd**2)
    return float(counts @ (centerd * y)) / spread if spread else 0.0


def _isotonic(values: Float64Array, counts: Float64Array) -> Float64Array:
    """Weighted isotonic regression by pooling adjacent violators."""
    # Each pool is its number of bins, its count and its sum.
    pools: list[tuple[int, float, float]] = []
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        pool = (1, count, count * value)
        while pools and pools[-1][2] / pools[-1][1] >= pool[2] / pool[1]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
        pools.append(pool)
    means = [total / count for _, count, total in pools]
    return np.repeat(means, [bins for bins, _, _ in pools])
