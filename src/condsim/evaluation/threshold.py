"""The threshold on a score that keeps a promised precision."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError

_ENOUGH = -math.log(0.025)  # evidence that leaves 2.5 % of doubt, on each side of the interval
_SHARES = np.arange(32) / 32  # of the errors that the promise allows: what is bet on
_MORE = (2, 4, 8, 16, 32, 64)  # times as many rows that might be enough

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Threshold:
    """A threshold and what it keeps, measured on the rows that it was chosen on.

    Attributes:
        value: Pairs with this score or a higher one count as alike.
        precision: Share of positive rows among those that reach it, in [0, 1].
        low: Lower end of the 95 % interval of the precision; at least what was promised.
        high: Its upper end.
        recall: Share of the positive rows that reach it, in [0, 1].
        reached: Number of rows that reach it.
        positives: Number of positive rows.
    """

    value: float
    precision: float
    low: float
    high: float
    recall: float
    reached: int
    rows: int
    positives: int


def find_threshold(scores: ArrayLike, positive: ArrayLike, *, precision: float = 0.95) -> Threshold:
    """Finds the lowest threshold whose precision is, with confidence, at least the promise.

    The lower end of a 95 % interval must reach the promise. Because the threshold is chosen on the
    same rows, an interval for a given threshold would be too narrow. This one holds at all
    thresholds at once: it is a confidence sequence (Howard et al., 2021, "Time-uniform,
    nonparametric, nonasymptotic confidence sequences") along the rows by falling score, a bet
    against the promise averaged over 32 stakes. It assumes that rows are labelled independently.

    Args:
        scores: Scores, ``(n,)``; higher is more similar.
        positive: Which rows are alike, ``(n,)`` of bool.
        precision: The promise, above 0 and below 1.

    Returns:
        The threshold.

    Raises:
        InputError: If the input breaks a rule, or no threshold keeps the promise: the message says
            whether the rows are too few or the scores too poor.

    Example:
        >>> scores = np.linspace(0, 1, 400)
        >>> found = find_threshold(scores, scores > 0.4)
        >>> 0.38 < found.value < 0.4, found.recall
        (True, 1.0)
    """
    values, labels = np.asarray(scores, np.float64), np.asarray(positive)
    _check(values, labels, precision)
    order = np.argsort(-values, kind="stable")
    values = values[order]
    hits = np.cumsum(labels[order], dtype=np.float64)  # (n,) of the rows so far
    whole = np.append(values[1:] < values[:-1], True)  # equal scores come in together
    values, hits = values[whole], hits[whole]
    misses = np.flatnonzero(whole) + 1 - hits
    evidence = _evidence(hits, misses, precision)
    kept = np.flatnonzero(evidence >= _ENOUGH)
    if kept.size:
        place = int(kept[-1])
        return _measured(float(values[place]), hits[place], misses[place], labels)
    needed = bisect_left(range(10**9), _ENOUGH, key=lambda n: float(_evidence(n, 0, precision)))
    if hits[-1] < needed:
        raise InputError(
            f"Too few labelled rows: a precision of {precision:g} takes at least {needed:,} "
            f"positive ones. Got {hits[-1]:,.0f} of {labels.size:,} rows; label more, or promise "
            "less."
        )
    place = int(np.where(hits + misses < needed, -np.inf, evidence).argmax())
    best = _measured(float(values[place]), hits[place], misses[place], labels)
    raise _no_threshold(best, precision)


def _check(values: _Floats, labels: NDArray[np.generic], precision: float) -> None:
    if not 0 < precision < 1:
        raise InputError(
            f"The precision must be above 0 and below 1, such as 0.95. Got {precision} instead."
        )
    if values.ndim != 1 or values.shape != labels.shape or labels.dtype != np.bool_:
        raise InputError(
            "A threshold needs a score and a bool for each row. Got the shapes "
            f"{values.shape} and {labels.shape} of {labels.dtype} instead."
        )
    if not np.isfinite(values).all():
        raise InputError("A threshold needs finite scores. Got one that is not; leave it out.")
    if not labels.any():
        raise InputError(
            f"A threshold needs positive rows. Got {labels.size} rows, none of them positive; "
            "lower the label that counts as positive, or label more."
        )


def _evidence(hits: ArrayLike, misses: ArrayLike, precision: ArrayLike) -> _Floats:
    """Log of what bets against a lower precision have won; the higher it is, the less they win."""
    hits, misses, p = (np.asarray(one, np.float64) for one in (hits, misses, precision))
    won = np.where(misses > 0, -np.inf, -hits * np.log(p))  # the bet that none is wrong
    for share in _SHARES[1:]:
        gain = np.log((1 - share * (1 - p)) / p)
        won = np.logaddexp(won, hits * gain + misses * math.log(share))
    return won - math.log(len(_SHARES))


def _lowest(hits: float, misses: float) -> float:
    """Lower end of the interval of a precision: what the bets have not yet ruled out."""
    low, high = 0.0, 1.0
    for _ in range(2):
        grid = np.linspace(low, high, 1001)[1:]
        ruled_out = int((_evidence(hits, misses, grid) >= _ENOUGH).sum())
        low, high = low + (high - low) * ruled_out / 1000, float(grid[min(ruled_out, 999)])
    return low


def _measured(value: float, hits: float, misses: float, labels: NDArray[np.generic]) -> Threshold:
    positives = int(np.count_nonzero(labels))
    return Threshold(
        value=value,
        precision=float(hits / (hits + misses)),
        low=_lowest(hits, misses),
        high=1 - _lowest(misses, hits),
        recall=float(hits / positives),
        reached=int(hits + misses),
        rows=labels.size,
        positives=positives,
    )


def _no_threshold(best: Threshold, precision: float) -> InputError:
    """Says whether more rows or better scores are missing."""
    hits = round(best.precision * best.reached)
    misses = best.reached - hits
    more = next((n for n in _MORE if _evidence(n * hits, n * misses, precision) >= _ENOUGH), None)
    advice = (
        f"Too few labelled rows: {more} times as many like these may be enough. Or promise less"
        if more
        else "The scores do not tell the rows apart so well: adapt the model, or promise less"
    )
    return InputError(
        f"No threshold keeps a precision of {precision:g}: the nearest, {best.value:.4f}, has "
        f"{best.precision:.3f} [{best.low:.3f}, {best.high:.3f}] on {best.reached:,} rows. "
        f"{advice}."
    )
