"""Figures of verdicts against the right ones: macro F1, each class, and merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from condsim.data.tasks import draw_folds
from condsim.evaluation.statistics import Metric
from condsim.model.judge import MERGED, VERDICTS
from condsim.types import Float64Array

_FOLDS = 10
_BINS = 20


@dataclass(frozen=True)
class VerdictFigures:
    """Figures of some pairs, all x 100; ``cannot tell`` is always wrong.

    Attributes:
        macro_f1: Mean of the F1 of the verdicts that occur.
        low: Lower end of its 95 % interval, ``high`` is the upper one; whole first texts are drawn.
        f1: F1 of each verdict that occurs.
        right: Share of right verdicts.
        wrongly_merged: Share of all pairs that are called duplicate or update and are neither.
        wrongly_kept: Share of all pairs that are duplicate or update and called neither.
    """

    pairs: int
    macro_f1: float
    low: float
    high: float
    f1: Mapping[str, float]
    right: float
    wrongly_merged: float
    wrongly_kept: float


def verdict_figures(
    right: Sequence[str],
    found: Sequence[str],
    first: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> VerdictFigures:
    """Compare verdicts with the right ones; pairs of one first text are drawn together."""
    names = [name for name in VERDICTS if name in {*right, *found}]
    wanted, given = (
        np.array([[cell == name for name in names] for cell in column], np.float64)
        for column in (right, found)
    )

    def macro(weights: Float64Array) -> Float64Array:
        means: Float64Array = _f1(weights, wanted, given).mean(axis=-1)
        return means

    clusters = np.unique(np.asarray(first), return_inverse=True)[1]
    mean = Metric.bootstrapped(macro, clusters, resamples=resamples, seed=seed)
    merged, mergeable = (np.isin(np.asarray(column), MERGED) for column in (found, right))
    classes = _f1(np.ones((1, len(right))), wanted, given)[0]
    return VerdictFigures(
        pairs=len(right),
        macro_f1=_percent(mean.value),
        low=_percent(mean.low),
        high=_percent(mean.high),
        f1={name: _percent(value) for name, value in zip(names, classes, strict=True)},
        right=_percent((np.asarray(right) == np.asarray(found)).mean()),
        wrongly_merged=_percent((merged & ~mergeable).mean()),
        wrongly_kept=_percent((mergeable & ~merged).mean()),
    )


def verdicts_by_score(
    scores: ArrayLike, right: Sequence[str], first: Sequence[str], *, seed: int = 0
) -> list[str]:
    """Tell verdicts by a single score, the best that a threshold sweep can do.

    Each pair gets the verdict that is most frequent among pairs of other folds whose score is in
    the same twentieth, so equal scores give the most frequent one. Pairs of one first text are in
    one fold.
    """
    values = np.asarray(scores, np.float64)
    wanted = np.array([VERDICTS.index(name) for name in right])
    folds = draw_folds(list(zip(first, first, strict=True)), folds=_FOLDS, seed=seed)
    found = np.zeros(len(right), np.int64)
    for fold in np.unique(folds):
        others = folds != fold
        if not others.any():
            others[:] = True
        edges = np.unique(np.quantile(values[others], np.linspace(0, 1, _BINS + 1)[1:-1]))
        bins = np.searchsorted(edges, values, side="right")
        counts = np.zeros((len(edges) + 1, len(VERDICTS)))
        np.add.at(counts, (bins[others], wanted[others]), 1)
        # An empty bin takes what is most frequent in all.
        counts += 1e-6 * counts.sum(axis=0)
        found[folds == fold] = counts.argmax(axis=1)[bins[folds == fold]]
    return [VERDICTS[place] for place in found.tolist()]


def _percent(share: float) -> float:
    return round(100 * float(share), 1)


def _f1(weights: Float64Array, wanted: Float64Array, given: Float64Array) -> Float64Array:
    """F1 of each class on weighted rows, ``(b, n)``; ``(b, classes)``, 0 where it has no row."""
    hits = weights @ (wanted * given)
    total: Float64Array = weights @ (wanted + given)
    return 2 * hits / np.maximum(total, 1e-12)
