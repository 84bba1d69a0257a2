"""Over-estimation: how often a model drives the two rows of a sentence pair too far apart.

Liu et al. (2025), CCL, Appendix A. The Quad loss pushes the cosines of a pair apart until they
differ by its margin, whatever the labels are. A pair is over-estimated when the row of the higher
label lies above its label and the other below its label, one of the two by more than 0.25.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError
from condsim.tasks import pair_rows
from condsim.types import Task

MARGIN = 0.25
"""How far beyond its label a similarity must be: one step of the Likert scale."""


@dataclass(frozen=True)
class OverEstimation:
    """How many pairs are over-estimated, and how far the rows are off on average.

    An error is the raw similarity minus gold. A row that is in several pairs, which happens where a
    sentence pair has more than two rows, counts once for each in the mean errors.

    Attributes:
        pairs: Pairs of rows with the same two sentences and different labels, at least 1.
        equation_16: Pairs whose high row is above gold by more than the margin while the low row is
            below gold.
        equation_17: Pairs whose low row is below gold by more than the margin while the high row is
            above gold.
        either: Pairs that fulfil one of the two or both: the over-estimated ones.
        high_error: Mean error of the high rows; above 0 is too similar.
        low_error: Mean error of the low rows; below 0 is too dissimilar.
        margin: The margin, on the scale of gold.
    """

    pairs: int
    equation_16: int
    equation_17: int
    either: int
    high_error: float
    low_error: float
    margin: float = MARGIN

    @property
    def rate(self) -> float:
        """Share of the pairs that are over-estimated, in [0, 1]."""
        return self.either / self.pairs


def over_estimation(scores: ArrayLike, task: Task, *, margin: float = MARGIN) -> OverEstimation:
    """Counts the over-estimated pairs of a task (CCL, Appendix A, Eq. 16 and 17).

    Only pairs of rows whose labels differ have a positive and a negative, so only they are counted;
    rows without a label, rows without a partner and pairs with equal labels take no part.

    Eq. 17 is corrected: as printed, its two lines cannot hold together. It is read as the mirror of
    Eq. 16, ``l_neg - cos_neg > 0.25 and cos_pos - l_pos > 0``.

    Args:
        scores: *Raw* similarities of all rows, ``(n,)``: for an encoder the cosines, which are what
            the losses act on. A calibrated score has had its distance from gold mended. Rows
            without a label may have any value.
        task: The data; gold is its labels mapped to [0, 1].
        margin: How far beyond gold a similarity must be, at least 0; exactly as far does not count.

    Returns:
        The counts.

    Raises:
        InputError: If there is no such pair or there are no conditions, the number of scores is not
            that of the rows, a score of a pair is not finite, or the margin is below 0 or not
            finite.

    Example:
        >>> task = Task("two", "-", ("a", "a"), ("b", "b"), ("c", "d"), np.float32([4, 2]))
        >>> over_estimation([1.0, 0.0], task)  # gold 0.75 and 0.25: each off by the margin only
        OverEstimation(pairs=1, equation_16=0, equation_17=0, either=0, high_error=0.25, \
low_error=-0.25, margin=0.25)
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(task),):
        raise InputError(
            f"Over-estimation needs one score for each row of {task.name}, ({len(task)},). "
            f"Got the shape {values.shape} instead."
        )
    pairing = pair_rows(task)
    check_pairs(pairing.pairs if task.conditions else 0, task)
    return count_over_estimation(
        values, task.gold, high=pairing.high, low=pairing.low, margin=margin
    )


def count_over_estimation(
    scores: ArrayLike,
    gold: ArrayLike,
    *,
    high: NDArray[np.int64],
    low: NDArray[np.int64],
    margin: float = MARGIN,
) -> OverEstimation:
    """Counts over-estimated pairs, given the rows of each, ``(p,)``; see `over_estimation`."""
    if not (math.isfinite(margin) and margin >= 0):
        raise InputError(f"The 'margin' must be a number of at least 0. Got {margin} instead.")
    errors = np.asarray(scores, np.float64) - np.asarray(gold, np.float64)  # (n,)
    above, below = errors[high], -errors[low]  # (p,); more than 0 is too far apart
    wrong = np.flatnonzero(~np.isfinite(above) | ~np.isfinite(below))
    if wrong.size:
        rows = f"{high[wrong[0]] + 1}. and {low[wrong[0]] + 1}."
        raise InputError(
            f"Over-estimation needs finite scores and labels. Got others in the pair of the {rows} "
            "row; the model is damaged or its training diverged."
        )
    equation_16 = (above > margin) & (below > 0)
    equation_17 = (below > margin) & (above > 0)
    return OverEstimation(
        pairs=len(high),
        equation_16=int(equation_16.sum()),
        equation_17=int(equation_17.sum()),
        either=int((equation_16 | equation_17).sum()),
        high_error=float(above.mean()),
        low_error=-float(below.mean()),
        margin=float(margin),
    )


def check_pairs(pairs: int, task: Task) -> None:
    """Refuses data in which no two rows can be set against each other."""
    if not pairs:
        raise InputError(
            f"{task.name}: over-estimation is counted on pairs of rows with the same two sentences "
            f"and different labels. Got none among the {int(task.valid.sum())} rows with a label; "
            "give a file that has each sentence pair under two conditions."
        )
