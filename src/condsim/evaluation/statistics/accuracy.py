"""AUROC: how often a row of one kind is scored above a row of the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError, ModelError
from condsim.evaluation.report import Metric
from condsim.evaluation.statistics.resampling import ResampledRanks, bootstrap, percentile_interval
from condsim.scorers import ScoredOnce
from condsim.tasks import Triplets
from condsim.types import Scorer


def pair_wins(
    scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Says of each pair whether its higher-labelled row scores higher.

    Args:
        scores: Similarities, ``(n,)``.
        high: Row of the higher label of each pair, ``(p,)``.
        low: Row of the lower label of each pair, ``(p,)``.

    Returns:
        1 where the higher-labelled row scores higher, 0.5 where both score the same, else 0;
        ``(p,)``.
    """
    values = np.asarray(scores, dtype=np.float64)
    return (np.sign(values[high] - values[low]) + 1.0) / 2


def pair_accuracy(scores: ArrayLike, *, high: NDArray[np.int64], low: NDArray[np.int64]) -> float:
    """Of the pairs whose two labels differ, how often the higher-labelled row scores higher.

    Args:
        scores: Similarities, ``(n,)``.
        high: Row of the higher label of each pair, ``(p,)``.
        low: Row of the lower label of each pair, ``(p,)``.

    Returns:
        The share of pairs in order, in [0, 1], equal scores counting one half; NaN without pairs.

    Example:
        >>> pair_accuracy([0.9, 0.2, 0.5, 0.5], high=np.array([0, 2]), low=np.array([1, 3]))
        0.75
    """
    wins = pair_wins(scores, high=high, low=low)
    return float(wins.mean()) if wins.size else float("nan")


def triplet_accuracy(
    scorer: Scorer, triplets: Triplets, *, resamples: int = 1000, seed: int = 0
) -> Metric:
    """Measures a scorer on triplets.

    Raw similarities are compared, since a calibration makes one score of all that are very low or
    very high. Equal similarities count as wrong, as a constant scorer must not be right.

    Args:
        scorer: The model.
        triplets: The triplets; a pair that is in several is scored each time.
        resamples: Number of bootstrap resamples of the triplets, at least 1.
        seed: Seed of the resamples.

    Returns:
        The accuracy in percent with its 95 % interval.

    Raises:
        InputError: If there are no triplets or ``resamples`` is below 1.
        ModelError: If the scorer returns another number of scores than rows, NaN or infinity.
    """
    if not len(triplets):
        raise InputError(f"{triplets.name}: has no triplets. Give at least one.")
    pairs = triplets.pairs()
    scores = ScoredOnce(scorer).score(pairs.sentences1, pairs.sentences2, None, scale="raw")
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise ModelError(
            f"{scorer.name}: score must return one finite number for each row, ({len(pairs)},). "
            f"Got the shape {scores.shape}, {int((~np.isfinite(scores)).sum())} not finite."
        )
    right = (scores[: len(triplets)] > scores[len(triplets) :]).astype(np.float64)  # (n,)
    draws = bootstrap(
        lambda weights: weights @ right / right.size,
        np.arange(right.size),
        resamples=resamples,
        seed=seed,
    )
    return Metric(100 * triplets.accuracy(scores), *percentile_interval(100 * draws))


def auroc(
    scores: NDArray[np.floating],
    positive: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Metric:
    """Area under the ROC curve, with a bootstrap interval over clusters.

    It is the Mann-Whitney statistic: the share of (positive, negative) pairs of rows in which the
    positive row has the higher score, ties counted half.

    Args:
        scores: Finite numbers, ``(n,)``.
        positive: Which rows are positive, ``(n,)``; at least one is and one is not.
        clusters: The sentence pair each row belongs to, ``(n,)``.
        resamples: How many bootstrap resamples to draw.
        seed: Seed of the draws.

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

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        drawn = weights * positive  # (b, n)
        ones, zeros = drawn.sum(axis=1), (weights * ~positive).sum(axis=1)
        both = ones * zeros
        # U = sum of the positive ranks - ones (ones + 1) / 2; with centred ranks, U - both / 2.
        above = np.einsum("bn,bn->b", drawn, ranks(weights))
        return np.where(both > 0, 0.5 + above / np.where(both > 0, both, 1.0), np.nan)

    value = statistic(np.ones((1, positive.size)))[0]
    drawn = bootstrap(statistic, clusters, resamples=resamples, seed=seed)
    return Metric(float(value), *percentile_interval(drawn))
