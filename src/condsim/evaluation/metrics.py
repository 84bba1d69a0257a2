"""The metrics of a report, for many scorers and many resamples at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.data.statistics import pair_rows
from condsim.errors import InputError
from condsim.evaluation.bootstrap import Metric, ResampledRanks, weighted_correlation, weighted_mean
from condsim.evaluation.correlation import partial_correlation
from condsim.types import Float64Array, Task


def pair_wins(
    scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]
) -> Float64Array:
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


def triplet_wins(scores: NDArray[np.floating]) -> Float64Array:
    """Tells which anchors are nearer to their positive (SSBC §4.5).

    Args:
        scores: Raw similarity of each row of `Triplets.pairs`, ``(2n,)``; calibrated,
            very low or very high ones become equal.

    Returns:
        1 for those that are, else 0, ``(n,)``; equal scores count as wrong.
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

    def statistic(weights: Float64Array) -> Float64Array:
        drawn = weights * positive  # (b, n)
        ones, zeros = drawn.sum(axis=1), (weights * ~positive).sum(axis=1)
        both = ones * zeros
        # U = sum of the positive ranks - ones (ones + 1) / 2; with centred ranks, U - both / 2.
        above = np.einsum("bn,bn->b", drawn, ranks(weights))
        return np.where(both > 0, 0.5 + above / np.where(both > 0, both, 1.0), np.nan)

    return Metric.bootstrapped(statistic, clusters, resamples=resamples, seed=seed)


def calibration_error(scores: ArrayLike, gold: ArrayLike, *, bins: int = 10) -> float:
    """Computes how far the mean label is from the score, on average.

    The expected calibration error of Naeini et al. (2015), over bins of as many rows each.

    Args:
        scores: Calibrated scores in [0, 1], ``(n,)``.
        gold: Labels in [0, 1], ``(n,)``.
        bins: Number of bins; each holds neighbours in the order of the scores.

    Returns:
        The mean over bins, weighted by their rows, of the absolute difference of the mean label
        and the mean score, in [0, 1]; 0 is perfect. NaN without rows.

    Raises:
        InputError: If there are no two arrays of one length, or ``bins`` is below 1.

    Example:
        >>> calibration_error([0.0, 0.5, 0.5, 1.0], [0.0, 0.0, 1.0, 0.5], bins=2)
        0.125
    """
    values, labels = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if values.shape != labels.shape or values.ndim != 1 or bins < 1:
        raise InputError(
            "Calibration needs as many labels as scores, and one bin or more. Got scores of shape "
            f"{values.shape}, labels of shape {labels.shape}, {bins} bins."
        )
    if not values.size:
        return math.nan
    _, tied = np.unique(values, return_inverse=True)
    labels = (np.bincount(tied, labels) / np.bincount(tied))[tied]  # or their order would count
    parts = np.array_split(np.argsort(values, kind="stable"), min(bins, values.size))
    return float(sum(abs((values[rows] - labels[rows]).sum()) for rows in parts) / values.size)


METRICS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "mse": "MSE",
    "pair_accuracy": "Pair acc.",
    "partial_spearman": "Partial",
}
"""Names of the metrics, in the order of the tables, and their column heads.

``spearman``, ``pearson`` and ``partial_spearman`` are correlations x 100, in [-100, 100];
``pair_accuracy`` is a percentage; ``mse`` is the squared error against gold in [0, 1].
"""

NO_ROWS: NDArray[np.int64] = np.zeros(0, np.int64)


class Metrics:
    """A statistic for the bootstrap: metrics of every scorer, from row weights."""

    def __init__(
        self,
        scores: Sequence[Float64Array],  # of each scorer, (n,), finite
        *,
        gold: Float64Array,  # in [0, 1], (n,)
        # the condition-only prediction, (n,); None makes partial_spearman NaN
        given: Float64Array | None = None,
        high: NDArray[np.int64] = NO_ROWS,  # row of the higher label of each of p pairs, (p,)
        low: NDArray[np.int64] = NO_ROWS,  # row of the lower label, (p,)
        names: Collection[str] = tuple(METRICS),
    ) -> None:
        """Prepares what does not change from one resample to the next."""
        self._names = names
        self._scores = [values - values.mean() for values in scores]
        # Centred, so that what counts as constant does not depend on where the scale begins.
        self._gold = gold - gold.mean()
        self._high = high
        self._gold_ranks = ResampledRanks(gold)
        self._given_ranks = None if given is None else ResampledRanks(given)
        self._score_ranks = [ResampledRanks(values) for values in scores]
        self._errors = [np.square(values - gold) for values in scores]
        self._wins = [pair_wins(values, high=high, low=low) for values in scores]

    def __call__(self, weights: Float64Array) -> Float64Array:
        """Values on the scales of `METRICS` from weights ``(b, n)``; ``(scorers, metrics, b)``."""
        gold_ranks = self._gold_ranks(weights)
        given_ranks = None if self._given_ranks is None else self._given_ranks(weights)
        absent = np.full(len(weights), np.nan)
        gold_given = absent
        if given_ranks is not None:
            gold_given = weighted_correlation(gold_ranks, given_ranks, weights)
        pair_weights = weights[:, self._high]  # both rows of a pair are drawn together
        values = []
        for index, scores in enumerate(self._scores):
            ranks = self._score_ranks[index](weights)
            spearman = weighted_correlation(ranks, gold_ranks, weights)
            found = {
                "spearman": 100 * spearman,
                "pearson": 100 * weighted_correlation(scores, self._gold, weights),
                "partial_spearman": absent,
            }
            if "mse" in self._names:
                found["mse"] = weighted_mean(self._errors[index], weights)
            if "pair_accuracy" in self._names:
                found["pair_accuracy"] = 100 * weighted_mean(self._wins[index], pair_weights)
            if given_ranks is not None:
                score_given = weighted_correlation(ranks, given_ranks, weights)
                found["partial_spearman"] = 100 * partial_correlation(
                    spearman, score_given, gold_given
                )
            values.append([found[name] for name in self._names])
        return np.asarray(values, dtype=np.float64)

    def point(self) -> Float64Array:
        """Values on the rows as they are, ``(scorers, metrics)``."""
        return self(np.ones((1, self._gold.size)))[:, :, 0]


MARGIN = 0.25
"""How far beyond its label a similarity must be: one step of the Likert scale. Exactly as far does
not count."""


@dataclass(frozen=True)
class OverEstimation:
    """How many pairs are over-estimated, and how far the rows are off on average.

    An error is the raw similarity minus gold. A row that is in several pairs, which happens where a
    sentence pair has more than two rows, counts once for each in the mean errors.

    Attributes:
        pairs: Pairs of rows with the same two sentences and different labels, at least 1.
        equation_16: Pairs whose high row is above gold by more than the margin while the low row is
            below gold.
        equation_17: Pairs whose low row is below gold by more than the margin while the high row is
            above gold.
        either: Pairs that fulfil one of the two or both: the over-estimated ones.
        high_error: Mean error of the high rows; above 0 is too similar.
        low_error: Mean error of the low rows; below 0 is too dissimilar.
        margin: The margin, on the scale of gold.
    """

    pairs: int
    equation_16: int
    equation_17: int
    either: int
    high_error: float
    low_error: float
    margin: float = MARGIN

    @property
    def rate(self) -> float:
        """Share of the pairs that are over-estimated, in [0, 1]."""
        return self.either / self.pairs


def over_estimation(scores: ArrayLike, task: Task) -> OverEstimation:
    """Counts the over-estimated pairs of a task (CCL, Appendix A, Eq. 16 and 17).

    Only pairs of rows whose labels differ have a positive and a negative, so only they are counted;
    rows without a label, rows without a partner and pairs with equal labels take no part.

    Eq. 17 is corrected: as printed, its two lines cannot hold together. It is read as the mirror of
    Eq. 16, ``l_neg - cos_neg > 0.25 and cos_pos - l_pos > 0``.

    Args:
        scores: *Raw* similarities of all rows, ``(n,)``: for an encoder the cosines, which are what
            the losses act on. A calibrated score has had its distance from gold mended. Rows
            without a label may have any value.
        task: The data; gold is its labels mapped to [0, 1].

    Raises:
        InputError: If there is no such pair or there are no conditions, the number of scores is not
            that of the rows, or a score of a pair is not finite.

    Example:
        >>> task = Task("two", "-", ("a", "a"), ("b", "b"), ("c", "d"), np.float32([4, 2]))
        >>> over_estimation([1.0, 0.0], task)  # gold 0.75 and 0.25: each off by the margin only
        OverEstimation(pairs=1, equation_16=0, equation_17=0, either=0, high_error=0.25, \
low_error=-0.25, margin=0.25)
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(task),):
        raise InputError(
            f"Over-estimation needs one score for each row of {task.name}, ({len(task)},). "
            f"Got the shape {values.shape} instead."
        )
    pairing = pair_rows(task)
    check_pairs(pairing.pairs if task.conditions else 0, task)
    return count_over_estimation(values, task.gold, high=pairing.high, low=pairing.low)


def count_over_estimation(
    scores: ArrayLike, gold: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]
) -> OverEstimation:
    """Counts over-estimated pairs, given the rows of each, ``(p,)``; see `over_estimation`."""
    errors = np.asarray(scores, np.float64) - np.asarray(gold, np.float64)  # (n,)
    above, below = errors[high], -errors[low]  # (p,); more than 0 is too far apart
    wrong = np.flatnonzero(~np.isfinite(above) | ~np.isfinite(below))
    if wrong.size:
        rows = f"{high[wrong[0]] + 1}. and {low[wrong[0]] + 1}."
        raise InputError(
            f"Over-estimation needs finite scores and labels. Got others in the pair of the {rows} "
            "row; the model is damaged or its training diverged."
        )
    equation_16 = (above > MARGIN) & (below > 0)
    equation_17 = (below > MARGIN) & (above > 0)
    return OverEstimation(
        pairs=len(high),
        equation_16=int(equation_16.sum()),
        equation_17=int(equation_17.sum()),
        either=int((equation_16 | equation_17).sum()),
        high_error=float(above.mean()),
        low_error=-float(below.mean()),
    )


def check_pairs(pairs: int, task: Task) -> None:
    """Refuses data in which no two rows can be set against each other."""
    if not pairs:
        raise InputError(
            f"{task.name}: over-estimation is counted on pairs of rows with the same two sentences "
            f"and different labels. Got none among the {int(task.valid.sum())} rows with a label; "
            "give a file that has each sentence pair under two conditions."
        )
