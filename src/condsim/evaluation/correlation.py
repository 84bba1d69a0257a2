"""Correlations, and one correlation for a year of STS, whose test set is several subsets."""

# ``all``: the subsets put one after the other, then one Spearman (SBERT, SimCSE, SSBC, MTEB);
# ``mean``: the mean of the Spearman of each subset (Giorgi et al., 2021, DeCLUTR); ``wmean``: the
# same, each weighted by its rows (BERT-flow, BERT-whitening). Figures of one kind are not
# comparable with those of another (SimCSE, Gao et al., 2021, appendix B, the source of this; SSBC
# does not say which, but its baselines are those of SBERT). ``mean`` and ``wmean`` do not ask a
# model to rank the pairs of one subset among those of another.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError, unknown_name

# Rounding leaves about 1e-15 where the exact variance is 0; a share of the variance smaller than
# this is taken to be 0, so that noise is never reported as a correlation.
NEGLIGIBLE = 1e-12


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks values ``(n,)`` from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(_vector(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared = last - (counts - 1) / 2
    return shared[inverse].astype(np.float64)


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Computes Pearson's product-moment correlation.

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
    """Computes Spearman's rank correlation, in [-1, 1]: Pearson's on average ranks.

    Takes ``(n,)`` numbers twice; gives NaN and raises where :func:`pearson` does.

    Example:
        >>> spearman([0.1, 0.2, 0.9], [1, 2, 3])
        1.0
    """
    first, second = _same_length(x, y)
    return pearson(average_ranks(first), average_ranks(second))


def partial_correlation(
    xy: NDArray[np.float64] | np.float64,
    xz: NDArray[np.float64] | np.float64,
    yz: NDArray[np.float64] | np.float64,
) -> NDArray[np.float64]:
    """``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2))``: partial correlation given z.

    A constant z (NaN) explains nothing; where z explains x or y in full, there is none.
    """
    xz, yz = np.nan_to_num(xz), np.nan_to_num(yz)
    left_x, left_y = 1.0 - np.square(xz), 1.0 - np.square(yz)
    defined = (left_x > NEGLIGIBLE) & (left_y > NEGLIGIBLE)
    denominator = np.sqrt(np.where(defined, left_x * left_y, 1.0))
    partial = np.clip((xy - xz * yz) / denominator, -1.0, 1.0)
    return np.where(defined, partial, np.nan)


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


Aggregation = Literal["all", "mean", "wmean"]


def aggregate_spearman(
    scores: Sequence[ArrayLike], gold: Sequence[ArrayLike], *, how: Aggregation = "all"
) -> float:
    """Computes one Spearman for a data set that is made of subsets.

    Args:
        scores: Similarities of each subset, each ``(n_k,)``, finite.
        gold: Gold similarities of each subset, each ``(n_k,)``, finite; all on one scale.
        how: ``all`` (one correlation over all rows), ``mean`` (of the subsets' correlations) or
            ``wmean`` (weighted by rows).

    Returns:
        The correlation in [-1, 1]; NaN where one it is made of does not exist.

    Raises:
        InputError: If there is no subset, the two differ in their subsets or in the length of one,
            a value is not finite, or there is no such aggregation.

    Example:
        >>> scores, gold = [[0.1, 0.2], [0.9, 0.8, 0.7]], [[1, 2], [3, 4, 5]]
        >>> aggregate_spearman(scores, gold, how="mean")
        0.0
        >>> round(aggregate_spearman(scores, gold, how="wmean"), 4)  # (2 * 1 + 3 * -1) / 5
        -0.2
        >>> aggregate_spearman(scores, gold)
        0.6
    """
    if how not in get_args(Aggregation):
        raise unknown_name("aggregation", how, get_args(Aggregation))
    if not scores or len(scores) != len(gold):
        raise InputError(
            "An aggregation needs scores and gold of the same subsets, one at least. Got "
            f"{len(scores)} and {len(gold)}."
        )
    each = [spearman(*subset) for subset in zip(scores, gold, strict=True)]
    if how == "mean":
        return float(np.mean(each))
    if how == "wmean":
        return float(np.average(each, weights=[np.size(subset) for subset in gold]))
    joined = [np.concatenate([np.asarray(one, float) for one in part]) for part in (scores, gold)]
    return spearman(*joined)
