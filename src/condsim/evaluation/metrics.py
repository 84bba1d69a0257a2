"""The metrics of a report, for many scorers and many resamples at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.data.tasks import pair_rows
from condsim.errors import InputError
from condsim.evaluation.statistics import (
    Metric,
    ResampledRanks,
    Statistic,
    partial_correlation,
    weighted_correlation,
    weighted_mean,
)
from condsim.types import Float64Array, Task


def pair_wins(
    scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]
) -> Float64Array:
    """Return 1 where the high row of a pair scores higher, 0.5 at a tie, else 0; ``(p,)``."""
    values = np.asarray(scores, dtype=np.float64)
    return (np.sign(values[high] - values[low]) + 1.0) / 2


def pair_accuracy(scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]) -> float:
    """Compute the share of pairs, in [0, 1], whose higher-labeled row scores higher.

    A tie counts one half; NaN without pairs. ``high`` and ``low`` are rows of ``scores``, ``(p,)``.
    """
    wins = pair_wins(scores, high=high, low=low)
    return float(wins.mean()) if wins.size else float("nan")


def triplet_wins(scores: NDArray[np.floating]) -> Float64Array:
    """Return 1 where an anchor is nearer to its positive, else 0, ``(n,)`` (SSBC §4.5).

    The raw similarities of `Triplets.pairs` are ``(2n,)``; equal ones count as wrong.
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
    """Compute the area under the ROC curve, with a bootstrap interval over clusters.

    The Mann-Whitney statistic: the share of (positive, negative) pairs of rows in which the
    positive row scores higher; a tie counts one half. ``clusters`` are sentence pairs, ``(n,)``.
    """
    if positive.all() or not positive.any():
        raise InputError(
            f"AUROC needs positive and negative rows; {int(positive.sum())} of {positive.size} are "
            "positive."
        )
    statistic = auroc_statistic(np.asarray(scores, np.float64), positive)
    return Metric.bootstrapped(statistic, clusters, resamples=resamples, seed=seed)


def auroc_statistic(scores: Float64Array, positive: NDArray[np.bool_]) -> Statistic:
    """Prepare the area under the ROC curve as a function of row weights ``(b, n)``."""
    ranks = ResampledRanks(scores)

    def statistic(weights: Float64Array) -> Float64Array:
        drawn = weights * positive  # (b, n)
        positives, negatives = drawn.sum(axis=1), (weights * ~positive).sum(axis=1)
        both = positives * negatives
        # U = sum of the p positive ranks - p (p + 1) / 2; with centered ranks, U - both / 2.
        above = np.einsum("bn,bn->b", drawn, ranks(weights))
        return np.where(both > 0, 0.5 + above / np.where(both > 0, both, 1.0), np.nan)

    return statistic


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
    """The metrics of every scorer as a statistic for the bootstrap."""

    def __init__(
        self,
        scores: Sequence[Float64Array],
        *,
        gold: Float64Array,
        control: Float64Array | None = None,
        high: NDArray[np.int64] = NO_ROWS,
        low: NDArray[np.int64] = NO_ROWS,
        names: Collection[str] = tuple(METRICS),
    ) -> None:
        """Prepare what does not change from one resample to the next.

        The gold similarities are in [0, 1], ``(n,)``; without the condition-only prediction as
        ``control``, partial Spearman is NaN. ``high`` and ``low`` are the rows of pairs, ``(p,)``.
        """
        self._names = names
        self._scores = [values - values.mean() for values in scores]
        # Centered, so that what counts as constant does not depend on where the scale begins.
        self._gold = gold - gold.mean()
        self._high = high
        self._gold_ranks = ResampledRanks(gold)
        self._control_ranks = None if control is None else ResampledRanks(control)
        self._score_ranks = [ResampledRanks(values) for values in scores]
        self._errors = [np.square(values - gold) for values in scores]
        self._wins = [pair_wins(values, high=high, low=low) for values in scores]

    def __call__(self, weights: Float64Array) -> Float64Array:
        """Compute the metrics from weights ``(b, n)``; ``(scorers, metrics, b)``."""
        gold_ranks = self._gold_ranks(weights)
        undefined = np.full(len(weights), np.nan)
        control_ranks, gold_control = None, undefined
        if self._control_ranks is not None:
            control_ranks = self._control_ranks(weights)
            gold_control = weighted_correlation(gold_ranks, control_ranks, weights)
        # Both rows of a pair are drawn together.
        pair_weights = weights[:, self._high]
        values = []
        for index, scores in enumerate(self._scores):
            ranks = self._score_ranks[index](weights)
            spearman = weighted_correlation(ranks, gold_ranks, weights)
            metrics = {
                "spearman": 100 * spearman,
                "pearson": 100 * weighted_correlation(scores, self._gold, weights),
                "partial_spearman": undefined,
            }
            if "mse" in self._names:
                metrics["mse"] = weighted_mean(self._errors[index], weights)
            if "pair_accuracy" in self._names:
                metrics["pair_accuracy"] = 100 * weighted_mean(self._wins[index], pair_weights)
            if control_ranks is not None:
                score_control = weighted_correlation(ranks, control_ranks, weights)
                partial = partial_correlation(spearman, score_control, gold_control)
                metrics["partial_spearman"] = 100 * partial
            values.append([metrics[name] for name in self._names])
        return np.asarray(values, dtype=np.float64)

    def point(self) -> Float64Array:
        """Compute the metrics on the rows as they are, ``(scorers, metrics)``."""
        return self(np.ones((1, self._gold.size)))[:, :, 0]


MARGIN = 0.25
"""Distance from its label that a similarity must exceed: one step of the Likert scale."""


@dataclass(frozen=True)
class OverEstimation:
    """Number of over-estimated pairs, and mean error of their rows.

    An error is the raw similarity minus gold. A row that is in several pairs, which happens where a
    sentence pair has more than two rows, counts once for each in the mean errors.

    Attributes:
        pairs: Pairs of rows with the same two sentences and different labels.
        equation_16: Pairs whose high row is above gold by more than the margin while the low row is
            below gold.
        equation_17: Pairs whose low row is below gold by more than the margin while the high row is
            above gold.
        either: Pairs that fulfill at least one of the two: the over-estimated ones.
        high_error: Mean error of the high rows; above 0 is too similar.
        low_error: Mean error of the low rows; below 0 is too dissimilar.
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
    """Count the over-estimated pairs of a task (CCL, Appendix A, Eq. 16 and 17).

    Only pairs of rows whose labels differ have a positive and a negative, so only they are counted;
    rows without a label, rows without a partner and pairs with equal labels take no part.

    Eq. 17 is corrected: as printed, its two lines cannot hold together. It is read as the mirror of
    Eq. 16, ``l_neg - cos_neg > 0.25 and cos_pos - l_pos > 0``.

    Args:
        scores: *Raw* similarities of all rows, ``(n,)``: for an encoder the cosines, which are what
            the losses act on. Calibration corrects distances from gold. Rows without a label may
            have any value.
        task: The data; gold is its labels mapped to [0, 1].

    Raises:
        InputError: If there is no such pair or there are no conditions, there are more or fewer
            scores than rows, or a score of a pair is not finite.

    Example:
        >>> task = Task("two", "-", ("a", "a"), ("b", "b"), ("c", "d"), np.float32([4, 2]))
        >>> over_estimation([1.0, 0.0], task)  # gold 0.75 and 0.25: each off by the margin only
        OverEstimation(pairs=1, equation_16=0, equation_17=0, either=0, high_error=0.25, \
low_error=-0.25, margin=0.25)
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(task),):
        raise InputError(
            f"Over-estimation needs one score for each row of {task.name}, ({len(task)},); got the "
            f"shape {values.shape}."
        )
    pairing = pair_rows(task)
    if not pairing.pairs or task.conditions is None:
        raise InputError(
            f"{task.name}: over-estimation is counted on pairs of rows with the same two sentences "
            f"and different labels; there are none among {int(task.valid.sum())} labeled rows."
        )
    errors = values - task.gold.astype(np.float64)  # (n,)
    # Values above 0 are too far apart.
    above, below = errors[pairing.high], -errors[pairing.low]  # (p,)
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        raise InputError(
            "Over-estimation needs finite scores and labels; the model is damaged or its training "
            "diverged."
        )
    equation_16 = (above > MARGIN) & (below > 0)
    equation_17 = (below > MARGIN) & (above > 0)
    return OverEstimation(
        pairs=pairing.pairs,
        equation_16=int(equation_16.sum()),
        equation_17=int(equation_17.sum()),
        either=int((equation_16 | equation_17).sum()),
        high_error=float(above.mean()),
        low_error=-float(below.mean()),
    )
