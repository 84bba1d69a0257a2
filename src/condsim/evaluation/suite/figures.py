"""The figures of one data set of the suite, and the same on resamples of its sentence pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from condsim.evaluation.statistics import (
    Aggregation,
    ResampledRanks,
    aggregate_spearman,
    bootstrap,
    pearson,
    weighted_correlation,
)
from condsim.evaluation.suite.data import SuiteTask
from condsim.tasks import pair_rows
from condsim.types import FloatArray

Float64Array = NDArray[np.float64]


def figure_names(task: SuiteTask) -> tuple[str, ...]:
    """The figures of a data set, the one in tables first.

    Returns:
        ``("accuracy",)`` for triplets, else ``("spearman", "pearson")``.
    """
    return ("accuracy",) if task.triplets else ("spearman", "pearson")


def figures(scores: FloatArray, task: SuiteTask, *, how: Aggregation) -> Float64Array:
    """Computes the figures of a data set.

    Args:
        scores: Raw similarities of its rows, ``(n,)``.
    """
    if task.triplets:
        return np.array([100 * _right(scores).mean()])
    parts = [np.asarray(scores[part], np.float64) for part in task.bounds()]
    gold = [task.task.gold[part].astype(np.float64) for part in task.bounds()]
    spearman = aggregate_spearman(parts, gold, how=how)
    if how == "all":
        linear = pearson(np.concatenate(parts), np.concatenate(gold))
    else:
        each = [pearson(*subset) for subset in zip(parts, gold, strict=True)]
        linear = float(np.average(each, weights=_weights(parts, how)))
    return 100 * np.array([spearman, linear])


def figure_draws(
    scores: Sequence[FloatArray], task: SuiteTask, *, how: Aggregation, resamples: int, seed: int
) -> Float64Array:
    """Computes the figures of scorers on the same resamples.

    What is drawn are sentence pairs with all their rows, or triplets; with ``mean`` and ``wmean``
    each subset is drawn for itself.

    Args:
        scores: Raw similarities of each scorer, each ``(n,)``.

    Returns:
        The figures x 100, ``(scorers, figures, resamples)``.
    """
    if task.triplets:
        right = np.stack([_right(values) for values in scores])  # (scorers, triplets)
        return 100 * bootstrap(
            lambda weights: (right @ weights.T / right.shape[1])[:, None],
            np.arange(right.shape[1]),
            resamples=resamples,
            seed=seed,
        )
    parts = [slice(None)] if how == "all" else task.bounds()
    drawn = []
    sizes = []
    for number, part in enumerate(parts):
        rows = np.arange(len(task.task))[part]
        subset = task.task.take(rows)
        statistic = _Correlations(
            [np.asarray(values[part], np.float64) for values in scores],
            subset.gold.astype(np.float64),
        )
        clusters = pair_rows(subset).pair_ids
        drawn.append(bootstrap(statistic, clusters, resamples=resamples, seed=seed + number))
        sizes.append(rows)
    return 100 * np.average(np.stack(drawn), axis=0, weights=_weights(sizes, how))


class _Correlations:
    """Spearman and Pearson of each scorer from row weights, for the bootstrap."""

    def __init__(self, scores: Sequence[Float64Array], gold: Float64Array) -> None:
        self._scores = [values - values.mean() for values in scores]
        self._gold = gold - gold.mean()
        self._gold_ranks = ResampledRanks(gold)
        self._ranks = [ResampledRanks(values) for values in scores]

    def __call__(self, weights: Float64Array) -> Float64Array:
        gold_ranks = self._gold_ranks(weights)
        return np.asarray(
            [
                [
                    weighted_correlation(ranks(weights), gold_ranks, weights),
                    weighted_correlation(scores, self._gold, weights),
                ]
                for ranks, scores in zip(self._ranks, self._scores, strict=True)
            ]
        )


def _right(scores: FloatArray) -> Float64Array:
    """Which triplets have the anchor nearer to the positive; equal scores are wrong."""
    half = len(scores) // 2
    return (scores[:half] > scores[half:]).astype(np.float64)


def _weights(subsets: Sequence[NDArray[np.generic]], how: Aggregation) -> list[int] | None:
    return [subset.size for subset in subsets] if how == "wmean" else None
