"""The threshold on a score that keeps a promised precision."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from condsim.errors import InputError
from condsim.model.criterion import Criterion
from condsim.types import Float64Array, IntArray

# Evidence that leaves 2.5 % of doubt, on each side of the interval.
_MIN_EVIDENCE = -math.log(0.025)
# Shares of the errors that the promise allows; each is a stake of the bet.
_STAKES = np.arange(32) / 32
# Multiples of the rows that are suggested if more rows might be enough.
_ROW_MULTIPLES = (2, 4, 8, 16, 32, 64)
_MAX_NEEDED_ROWS = 10**9
# Fewer rows at the top may be right by chance.
_MIN_TOP_ROWS = 10
PROMISES = (0.95, 0.9, 0.8, 0.7)
"""Promises for a learned criterion: the first that its labels allow."""

_MORE_ROWS = "Too few labeled rows: {} times as many like these may be enough. Or promise less."
_SEPARATE = "The scores do not separate the rows well enough: adapt the model, or promise less."


@dataclass(frozen=True)
class Threshold:
    """A threshold and its precision and recall, measured on the rows that it was chosen on.

    Attributes:
        value: Pairs with this score or a higher one count as alike.
        precision: Share of positive rows among those that reach it, in [0, 1].
        low: Lower end of its 95 % interval, at least the promise; ``high`` is the upper end.
        recall: Share of the positive rows that reach it, in [0, 1].
        reached: Number of rows that reach it.
    """

    value: float
    precision: float
    low: float
    high: float
    recall: float
    reached: int
    rows: int
    positives: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def check_promise(precision: float) -> None:
    """Reject a promise that is not above 0 and below 1."""
    if not 0 < precision < 1:
        raise InputError(f"The precision must be above 0 and below 1; got {precision}.")


def find_threshold(
    scores: ArrayLike,
    positive: ArrayLike,
    *,
    precision: float = 0.95,
    texts: ArrayLike | None = None,
) -> Threshold:
    """Find the lowest threshold whose precision is, with confidence, at least the promise.

    The lower end of a 95 % interval must reach the promise. Because the threshold is chosen on the
    same rows, an interval for a fixed threshold would be too narrow. This one holds at all
    thresholds at once: it is a confidence sequence (Howard et al., 2021, "Time-uniform,
    nonparametric, nonasymptotic confidence sequences") along the rows by falling score, a bet
    against the promise averaged over 32 stakes. It assumes that rows are labeled independently.
    Pairs that share texts are not: with ``texts``, they count as much as the sets of disjoint pairs
    that they can be split into (Janson, 2004, "Large deviations for sums of partly dependent random
    variables").

    Args:
        scores: Scores, ``(n,)``; higher is more similar.
        positive: Marks of the alike rows, ``(n,)`` of bool.
        precision: The promise, above 0 and below 1.
        texts: Indices of the two texts of each row, ``(n, 2)``, where rows share texts.

    Raises:
        InputError: If the input breaks a rule, or no threshold keeps the promise: the message says
            whether the rows are too few or the scores too poor.

    Example:
        >>> scores = np.linspace(0, 1, 400)
        >>> threshold = find_threshold(scores, scores > 0.4)
        >>> 0.38 < threshold.value < 0.4, threshold.recall
        (True, 1.0)
    """
    check_promise(precision)
    curve = _Curve.of(scores, positive, texts)
    hits, misses, measure = curve.hits, curve.misses, curve.measure
    evidence = _evidence(hits / curve.overlap, misses / curve.overlap, precision)
    proven = np.flatnonzero(evidence >= _MIN_EVIDENCE)
    if proven.size:
        return measure(int(proven[-1]))
    needed = _fewest_rows(precision)
    if hits[-1] < needed:
        raise InputError(
            f"Too few labeled rows: a precision of {precision:g} takes at least {needed:,} "
            f"positive ones, and {hits[-1]:,.0f} of {hits[-1] + misses[-1]:,.0f} rows are positive."
        )
    index, advice = int(np.where(hits + misses < needed, -np.inf, evidence).argmax()), _SEPARATE
    for factor in _ROW_MULTIPLES:
        # The rows at the top may be right, and be too few.
        grown = _evidence(factor * hits, factor * misses, precision)
        grown = np.where(hits + misses < _MIN_TOP_ROWS, -np.inf, grown)
        if grown.max() >= _MIN_EVIDENCE:
            index, advice = int(grown.argmax()), _MORE_ROWS.format(factor)
            break
    best = measure(index)
    raise InputError(
        f"No threshold keeps a precision of {precision:g}: the nearest, {best.value:.4f}, has "
        f"{best.precision:.3f} [{best.low:.3f}, {best.high:.3f}] on {best.reached:,} rows. {advice}"
    )


def learned_threshold(criterion: Criterion) -> tuple[Threshold | None, str]:
    """Find the threshold of a criterion with the highest promise that its labels allow.

    Each labeled pair counts with the score of what was learned without its texts. Returns the
    threshold, or None, and a line that says what it promises or what is missing. A criterion that
    was read from a file has no labels: an InputError.
    """
    if criterion.held_out is None:
        raise InputError("A threshold needs labels, and the criterion was read from a file.")
    scores, texts, same = criterion.held_out
    for promise in PROMISES:
        try:
            best = find_threshold(scores, same, precision=promise, texts=texts)
        except InputError:
            continue
        line = (
            f"Threshold {best.value:.4f}: of pairs with this score or a higher one, "
            f"{100 * promise:.0f} in 100 or more are the same. It finds {100 * best.recall:.0f} % "
            "of the same pairs."
        )
        more = f" More labels may allow a promise of {100 * PROMISES[0]:.0f} in 100."
        return best, line if promise == PROMISES[0] else line + more
    curve, labels = _Curve.of(scores, same, texts), criterion.figures.labels
    lowest = f"{100 * PROMISES[-1]:.0f} in 100"
    missing = _fewest_rows(PROMISES[-1]) / float((curve.hits / curve.overlap).max())
    if missing > 1:
        return None, (
            f"{labels} labels are too few to promise a threshold: even {lowest} takes about "
            f"{math.ceil(labels * missing)}."
        )
    return None, (
        f"These {labels} labels promise no threshold: even for {lowest}, too many different pairs "
        "score as high as the same ones."
    )


def threshold_table(scores: ArrayLike, positive: ArrayLike) -> list[Threshold]:
    """Measure thresholds in steps of 0.05, and the one with the highest F1, by falling value.

    The rows are as in `find_threshold`, with scores in [0, 1].
    """
    curve = _Curve.of(scores, positive)
    f1 = 2 * curve.hits / (curve.hits + curve.misses + curve.hits[-1])
    indices = {int(f1.argmax())}
    for step in range(20, 0, -1):
        reached = np.flatnonzero(curve.values >= step / 20)
        if len(reached):
            indices.add(int(reached[-1]))
    return [curve.measure(index) for index in sorted(indices)]


@dataclass(frozen=True)
class _Curve:
    """Distinct scores, falling, and the right and wrong rows that reach each, ``(m,)``.

    The overlap is the number of sets of disjoint pairs that these rows can be split into.
    """

    values: Float64Array
    hits: Float64Array
    misses: Float64Array
    overlap: Float64Array

    @classmethod
    def of(cls, scores: ArrayLike, positive: ArrayLike, texts: ArrayLike | None = None) -> Self:
        values, labels = np.asarray(scores, np.float64), np.asarray(positive)
        has_rows = values.ndim == 1 and values.shape == labels.shape and labels.dtype == np.bool_
        if not (has_rows and np.isfinite(values).all() and labels.any()):
            raise InputError(
                "A threshold needs a finite score and a bool for each row, and at least one "
                f"positive row; got the shapes {values.shape} and {labels.shape} of "
                f"{labels.dtype}."
            )
        order = np.argsort(-values, kind="stable")
        values = values[order]
        hits = np.cumsum(labels[order], dtype=np.float64)  # (n,)
        # Rows with equal scores reach a threshold together.
        is_last = np.append(values[1:] < values[:-1], True)
        overlap = np.ones(len(order)) if texts is None else _overlap(np.asarray(texts)[order])
        misses = np.arange(1, len(order) + 1) - hits
        return cls(values[is_last], hits[is_last], misses[is_last], overlap[is_last])

    def measure(self, index: int) -> Threshold:
        """Measure the threshold at a score."""
        hits, misses = self.hits[index], self.misses[index]
        counted = hits / self.overlap[index], misses / self.overlap[index]
        return Threshold(
            value=float(self.values[index]),
            precision=float(hits / (hits + misses)),
            low=_lower_end(*counted),
            high=1 - _lower_end(*counted[::-1]),
            recall=float(hits / self.hits[-1]),
            reached=int(hits + misses),
            rows=int(self.hits[-1] + self.misses[-1]),
            positives=int(self.hits[-1]),
        )


def _overlap(texts: IntArray) -> Float64Array:
    """Bound the sets of disjoint pairs that the first pairs can be split into, ``(n,)``.

    It is at most one more than the pairs of the text that has most (Vizing, 1964).
    """
    flat = texts.ravel()
    order = np.argsort(flat, kind="stable")
    starts = np.flatnonzero(np.append(True, flat[order][1:] != flat[order][:-1]))
    lengths = np.diff(np.append(starts, len(flat)))
    number = np.empty(len(flat))
    number[order] = np.arange(1, len(flat) + 1) - np.repeat(starts, lengths)
    most = np.maximum.accumulate(number.reshape(-1, 2).max(axis=1))
    return np.asarray(most + (most > 1))


def _fewest_rows(precision: float) -> int:
    """Return how many rows, all of them right, prove a precision."""
    return bisect_left(
        range(_MAX_NEEDED_ROWS),
        _MIN_EVIDENCE,
        key=lambda rows: float(_evidence(rows, 0, precision)),
    )


def _evidence(hits: ArrayLike, misses: ArrayLike, precision: ArrayLike) -> Float64Array:
    """Compute the log of what bets against a lower precision have won."""
    hits, misses = np.asarray(hits, np.float64), np.asarray(misses, np.float64)
    p = np.asarray(precision, np.float64)
    # The first bet is that no row is wrong.
    won = np.where(misses > 0, -np.inf, -hits * np.log(p))
    for stake in _STAKES[1:]:
        gain = np.log((1 - stake * (1 - p)) / p)
        won = np.logaddexp(won, hits * gain + misses * math.log(stake))
    return won - math.log(len(_STAKES))


def _lower_end(hits: float, misses: float) -> float:
    """Return the lowest precision that the bets have not ruled out."""
    low, high = 0.0, 1.0
    for _ in range(2):
        grid = np.linspace(low, high, 1001)[1:]
        ruled_out = int((_evidence(hits, misses, grid) >= _MIN_EVIDENCE).sum())
        low, high = low + (high - low) * ruled_out / 1000, float(grid[min(ruled_out, 999)])
    return low
