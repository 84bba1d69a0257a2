"""Change of a score when its condition is reworded without changing its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from condsim.data.rewordings import Rewordings
from condsim.evaluation.evaluate import check_scores
from condsim.evaluation.statistics import Metric, Statistic, weighted_mean
from condsim.types import Float64Array, IntArray, Scorer

BAR = 0.05
"""A model passes if the mean standard deviation of its scores is below this."""


@dataclass(frozen=True)
class WordingShift:
    """Effect of one wording of a condition on scores.

    ``shift`` is the mean of its score minus the mean over all wordings, -1 to 1, and ``distance``
    the mean of the absolute value of that.
    """

    condition_group: str
    condition: str
    pairs: int
    shift: float
    distance: float


@dataclass(frozen=True)
class Robustness:
    """Change of scores with the wording.

    A deviation is the standard deviation (with n - 1) of the scores, 0 to 1, of one sentence pair
    under the wordings of one condition. Intervals are 95 % bootstrap intervals over the pairs.

    Attributes:
        groups: Number of deviations: of sentence pairs under a condition.
        p95: 95th percentile of the deviations.
        kinds: By condition group, the mean of its deviations.
        wordings: Each wording, the one that changes scores most first.
    """

    model: str
    data: str
    data_revision: str
    rows: int
    groups: int
    mean: Metric
    p95: Metric
    kinds: Mapping[str, Metric]
    wordings: tuple[WordingShift, ...]
    seed: int
    resamples: int

    @property
    def passes(self) -> bool:
        """True if the mean is below `BAR`."""
        return self.mean.value < BAR

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {"format": 1, "bar": BAR, "passes": self.passes, **asdict(self)}


def robustness(
    scorer: Scorer, rewordings: Rewordings, *, resamples: int = 1000, seed: int = 0
) -> Robustness:
    """Measure how much scores change with the wording of the condition.

    Args:
        scorer: The model; its scores must be in [0, 1].
        rewordings: Pairs under several wordings of a condition.

    Raises:
        InputError: If ``resamples`` is below 1.
        ModelError: If there are more or fewer scores than rows, or one is NaN or infinite.
    """
    scores = np.asarray(
        scorer.score(rewordings.sentences1, rewordings.sentences2, rewordings.conditions),
        dtype=np.float64,
    )
    check_scores(scorer.name, scores, len(rewordings))
    ids = rewordings.group_ids
    shifts = scores - (np.bincount(ids, scores) / np.bincount(ids))[ids]  # (n,)
    deviations = np.sqrt(np.bincount(ids, shifts**2) / (np.bincount(ids) - 1))  # (groups,)
    first_rows = np.unique(ids, return_index=True)[1]  # (groups,)
    kinds = np.array([rewordings.condition_groups[row] for row in first_rows])
    # A sentence pair may have several conditions.
    numbers: dict[tuple[str, str], int] = {}
    texts = [(rewordings.sentences1[row], rewordings.sentences2[row]) for row in first_rows]
    pairs = np.array([numbers.setdefault(pair, len(numbers)) for pair in texts], np.int64)

    def measure(statistic: Statistic, groups: IntArray) -> Metric:
        return Metric.bootstrapped(statistic, pairs[groups], resamples=resamples, seed=seed)

    kind_means = {}
    for kind in dict.fromkeys(rewordings.condition_groups):
        groups = np.flatnonzero(kinds == kind)
        kind_means[kind] = measure(partial(weighted_mean, deviations[groups]), groups)
    all_groups = np.arange(len(first_rows))
    return Robustness(
        model=scorer.name,
        data=rewordings.name,
        data_revision=rewordings.revision,
        rows=len(rewordings),
        groups=len(first_rows),
        mean=measure(partial(weighted_mean, deviations), all_groups),
        p95=measure(partial(_p95, deviations), all_groups),
        kinds=kind_means,
        wordings=_wording_shifts(rewordings, shifts),
        seed=seed,
        resamples=resamples,
    )


def _p95(values: Float64Array, weights: Float64Array) -> Float64Array:
    """Compute the 95th percentile of values ``(n,)`` on each resample, ``(b, n)``; ``(b,)``."""
    counts = weights.astype(np.int64)
    return np.array([np.quantile(np.repeat(values, row), 0.95) for row in counts])


def _wording_shifts(rewordings: Rewordings, shifts: Float64Array) -> tuple[WordingShift, ...]:
    rows_of: dict[tuple[str, str], list[int]] = {}
    wordings = zip(rewordings.condition_groups, rewordings.conditions, strict=True)
    for row, key in enumerate(wordings):
        rows_of.setdefault(key, []).append(row)
    results = []
    for (group, wording), rows in rows_of.items():
        shift, distance = float(shifts[rows].mean()), float(np.abs(shifts[rows]).mean())
        results.append(WordingShift(group, wording, len(rows), shift, distance))
    return tuple(sorted(results, key=lambda result: -result.distance))
