"""The metrics of one data set of the suite, on its rows and on resamples of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from condsim.evaluation.statistics import (
    Aggregation,
    Metrics,
    aggregate_spearman,
    bootstrap,
    pearson,
    triplet_wins,
)
from condsim.evaluation.suite.data import SuiteTask
from condsim.tasks import pair_rows
from condsim.types import FloatArray

Float64Array = NDArray[np.float64]


_CORRELATIONS = ("spearman", "pearson")


def metric_names(task: SuiteTask) -> tuple[str, ...]:
    """The metrics of a data set, the one in tables first."""
    return ("accuracy",) if task.triplets else _CORRELATIONS


def metric_values(scores: FloatArray, task: SuiteTask, *, how: Aggregation) -> Float64Array:
    """Computes the metrics of a data set, x 100, from raw similarities ``(n,)``; ``(metrics,)``."""
    if task.triplets:
        return np.array([100 * triplet_wins(scores).mean()])
    parts = [np.asarray(scores[part], np.float64) for part in task.bounds()]
    gold = [task.task.gold[part].astype(np.float64) for part in task.bounds()]
    spearman = aggregate_spearman(parts, gold, how=how)
    if how == "all":
        linear = pearson(np.concatenate(parts), np.concatenate(gold))
    else:
        each = [pearson(*subset) for subset in zip(parts, gold, strict=True)]
        linear = float(np.average(each, weights=_weights(parts, how)))
    return 100 * np.array([spearman, linear])


def metric_draws(
    scores: Sequence[FloatArray], task: SuiteTask, *, how: Aggregation, resamples: int, seed: int
) -> Float64Array:
    """Computes the metrics of scorers on the same resamples, ``(scorers, metrics, resamples)``.

    Sentence pairs are drawn with all their rows, or triplets; with ``mean`` and ``wmean`` each
    subset is drawn on its own.

    Args:
        scores: Raw similarities of each scorer, each ``(n,)``.
    """
    if task.triplets:
        right = np.stack([triplet_wins(values) for values in scores])  # (scorers, triplets)
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
        statistic = Metrics(
            [np.asarray(values[part], np.float64) for values in scores],
            gold=subset.gold.astype(np.float64),
            names=_CORRELATIONS,
        )
        clusters = pair_rows(subset).pair_ids
        drawn.append(bootstrap(statistic, clusters, resamples=resamples, seed=seed + number))
        sizes.append(rows)
    return np.asarray(np.average(np.stack(drawn), axis=0, weights=_weights(sizes, how)))


def _weights(subsets: Sequence[NDArray[np.generic]], how: Aggregation) -> list[int] | None:
    return [subset.size for subset in subsets] if how == "wmean" else None
