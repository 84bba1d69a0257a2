"""The metrics of a report, for many scorers and many resamples at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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

Float64Array = NDArray[np.float64]
NO_ROWS: NDArray[np.int64] = np.zeros(0, np.int64)


class Metrics:
    """A statistic for the bootstrap: metrics of every scorer, from row weights."""

    def __init__(
        self,
        scores: Sequence[Float64Array],
        *,
        gold: Float64Array,
        given: Float64Array | None = None,
        high: NDArray[np.int64] = NO_ROWS,
        low: NDArray[np.int64] = NO_ROWS,
        names: Collection[str] = tuple(METRICS),
    ) -> None:
        """Prepares what does not change from one resample to the next.

        Args:
            scores: The scores of each scorer, each ``(n,)`` and finite.
            gold: Gold similarity in [0, 1], ``(n,)``.
            given: The condition-only prediction, ``(n,)``, held fixed in the partial Spearman; None
                where there are no conditions, which makes it NaN.
            high: Row of the higher label of each pair whose labels differ, ``(p,)``.
            low: Row of the lower label of each of these pairs, ``(p,)``.
            names: The metrics to compute, of `METRICS`.
        """
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
