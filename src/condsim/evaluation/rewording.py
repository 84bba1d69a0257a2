"""How much a score changes when its condition is reworded without changing its meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from condsim.data.rewordings import Rewordings
from condsim.evaluation.bootstrap import Metric, weighted_mean
from condsim.evaluation.evaluate import check_scores
from condsim.types import Float64Array, IntArray, Scorer

BAR = 0.05
"""A model passes if the mean standard deviation of its scores is below this."""


@dataclass(frozen=True)
class WordingShift:
    """What one wording of a condition does to scores."""

    condition_group: str  # the condition it is a wording of
    condition: str
    pairs: int  # sentence pairs that were scored under it
    shift: float  # mean of its score minus the mean over all wordings, -1 to 1
    distance: float  # mean of the absolute value of that, 0 to 1


@dataclass(frozen=True)
class Robustness:
    """How much scores change with the wording.

    A deviation is the standard deviation (with n - 1) of the scores, 0 to 1, of one sentence pair
    under the wordings of one condition. Intervals are 95 % bootstrap intervals over the pairs.

    Attributes:
        data: Name of the rewordings.
        data_revision: First 12 hex digits of the SHA-256 of their file.
        rows: Rows scored.
        groups: Sentence pairs under a condition: what there is a deviation of.
        mean: Mean of the deviations.
        p95: Their 95th percentile.
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
        """Whether the mean is below `BAR`."""
        return self.mean.value < BAR

    def to_dict(self) -> dict[str, Any]:
        """Gives the result as plain values."""
        return {"format": 1, "bar": BAR, "passes": self.passes, **asdict(self)}


def robustness(
    scorer: Scorer, rewordings: Rewordings, *, resamples: int = 1000, seed: int = 0
) -> Robustness:
    """Measures how much scores change with the wording of the condition.

    Args:
        scorer: The model; its scores must be in [0, 1].
        rewordings: Pairs under several wordings of a condition.

    Returns:
        The deviations, per condition and over all, and the effect of each wording.

    Raises:
        InputError: If ``resamples`` is below 1.
        ModelError: If the scorer returns another number of scores than rows, NaN or infinity.
    """
    scores = np.asarray(
        scorer.score(rewordings.sentences1, rewordings.sentences2, rewordings.conditions),
        dtype=np.float64,
    )
    check_scores(scorer.name, scores, len(rewordings))
    ids = rewordings.group_ids
    shifts = scores - (np.bincount(ids, scores) / np.bincount(ids))[ids]  # (n,)
    deviations = np.sqrt(np.bincount(ids, shifts**2) / (np.bincount(ids) - 1))  # (groups,)
    first = np.unique(ids, return_index=True)[1]  # a row of each group
    kinds = np.array([rewordings.condition_groups[row] for row in first])
    pairs = _pairs(rewordings, first)

    def measured(statistic: Callable[..., Float64Array], rows: IntArray) -> Metric:
        of_rows = partial(statistic, deviations[rows])
        return Metric.bootstrapped(of_rows, pairs[rows], resamples=resamples, seed=seed)

    everything = np.arange(len(first))
    return Robustness(
        model=scorer.name,
        data=rewordings.name,
        data_revision=rewordings.revision,
        rows=len(rewordings),
        groups=len(first),
        mean=measured(weighted_mean, everything),
        p95=measured(_p95, everything),
        kinds={
            kind: measured(weighted_mean, np.flatnonzero(kinds == kind))
            for kind in dict.fromkeys(rewordings.condition_groups)
        },
        wordings=_wordings(rewordings, shifts),
        seed=seed,
        resamples=resamples,
    )


def _pairs(rewordings: Rewordings, rows: IntArray) -> IntArray:
    """The sentence pair of some rows, numbered from 0: a pair may have several conditions."""
    numbers: dict[tuple[str, str], int] = {}
    pairs = [(rewordings.sentences1[row], rewordings.sentences2[row]) for row in rows]
    return np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], np.int64)


def _p95(values: Float64Array, weights: Float64Array) -> Float64Array:
    """The 95th percentile of values ``(n,)`` on each resample, ``(b, n)``; ``(b,)``."""
    counts = weights.astype(np.int64)
    return np.array([np.quantile(np.repeat(values, row), 0.95) for row in counts])


def _wordings(rewordings: Rewordings, shifts: Float64Array) -> tuple[WordingShift, ...]:
    rows_of: dict[tuple[str, str], list[int]] = {}
    wordings = zip(rewordings.condition_groups, rewordings.conditions, strict=True)
    for row, key in enumerate(wordings):
        rows_of.setdefault(key, []).append(row)
    found = [
        WordingShift(
            group,
            wording,
            pairs=len(rows),
            shift=float(shifts[rows].mean()),
            distance=float(np.abs(shifts[rows]).mean()),
        )
        for (group, wording), rows in rows_of.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.distance))
