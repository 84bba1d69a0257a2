"""The five figures of a report, for many scorers and many resamples at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from condsim.evaluation.statistics.accuracy import pair_wins
from condsim.evaluation.statistics.correlation import partial_correlation
from condsim.evaluation.statistics.resampling import (
    ResampledRanks,
    weighted_correlation,
    weighted_mean,
)

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

HIGHER_IS_BETTER = {name: name != "mse" for name in METRICS}

Float64Array = NDArray[np.float64]


class Metrics:
    """A statistic for the bootstrap: every metric of every scorer, from row weights."""

    def __init__(
        self,
        scores: Sequence[Float64Array],
        *,
        gold: Float64Array,
        given: Float64Array | None,
        high: NDArray[np.int64],
        low: NDArray[np.int64],
    ) -> None:
        """Prepares what does not change from one resample to the next.

        Args:
            scores: The scores of each scorer, each ``(n,)`` and finite.
            gold: Gold similarity in [0, 1], ``(n,)``.
            given: The condition-only prediction, ``(n,)``, held fixed in the partial Spearman; None
                where there are no conditions, which makes it NaN.
            high: Row of the higher label of each pair whose labels differ, ``(p,)``.
            low: Row of the lower label of each of these pairs, ``(p,)``.
        """
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
        """Computes every metric of every scorer on each resample.

        Args:
            weights: How often each resample holds each row, ``(b, n)``.

        Returns:
            The values on the scales of :data:`METRICS`, ``(scorers, metrics, b)``.
        """
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
            partial = absent
            if given_ranks is not None:
                score_given = weighted_correlation(ranks, given_ranks, weights)
                partial = partial_correlation(spearman, score_given, gold_given)
            by_name = {
                "spearman": 100 * spearman,
                "pearson": 100 * weighted_correlation(scores, self._gold, weights),
                "mse": weighted_mean(self._errors[index], weights),
                "pair_accuracy": 100 * weighted_mean(self._wins[index], pair_weights),
                "partial_spearman": 100 * partial,
            }
            values.append([by_name[name] for name in METRICS])
        return np.asarray(values, dtype=np.float64)

    def point(self) -> Float64Array:
        """Computes every metric of every scorer on the rows as they are.

        Returns:
            The values, ``(scorers, metrics)``.
        """
        return self(np.ones((1, self._gold.size)))[:, :, 0]
