"""One correlation for a year of STS, whose test set is several subsets.

| aggregation | what it is | who reports it |
|---|---|---|
| ``all`` | the subsets put one after the other, then one Spearman | SBERT, SimCSE, SSBC, MTEB |
| ``mean`` | the mean of the Spearman of each subset | Giorgi et al., 2021 (DeCLUTR) |
| ``wmean`` | the same, each subset weighted by its rows | BERT-flow, BERT-whitening |

SentEval prints all three, and figures of one kind are not comparable with those of another (SimCSE,
Gao et al., 2021, appendix B, from which the table is; SSBC does not say which, but its baselines
are those of SBERT). ``mean`` and ``wmean`` leave out that a model must also rank the pairs of one
subset beside those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from condsim.errors import InputError, unknown_name
from condsim.evaluation.correlation import spearman

__all__ = ["Aggregation", "aggregate_spearman"]

Aggregation = Literal["all", "mean", "wmean"]


def aggregate_spearman(
    scores: Sequence[ArrayLike], gold: Sequence[ArrayLike], *, how: Aggregation = "all"
) -> float:
    """Spearman over subsets, as one number.

    Args:
        scores: Similarities of each subset, each ``(n_k,)``, finite.
        gold: Gold similarities of each subset, each ``(n_k,)``, finite; all on one scale.
        how: ``all`` (one correlation over all rows), ``mean`` (of the subsets' correlations) or
            ``wmean`` (weighted by rows).

    Returns:
        The correlation in [-1, 1]; NaN where one it is made of does not exist.

    Raises:
        InputError: If there is no subset, the two differ in their subsets or in the length of one,
            a value is not finite, or there is no such aggregation.

    Example:
        >>> scores, gold = [[0.1, 0.2], [0.9, 0.8, 0.7]], [[1, 2], [3, 4, 5]]
        >>> aggregate_spearman(scores, gold, how="mean")
        0.0
        >>> round(aggregate_spearman(scores, gold, how="wmean"), 4)  # (2 * 1 + 3 * -1) / 5
        -0.2
        >>> aggregate_spearman(scores, gold)
        0.6
    """
    if how not in get_args(Aggregation):
        raise unknown_name("aggregation", how, get_args(Aggregation))
    if not scores or len(scores) != len(gold):
        raise InputError(
            "An aggregation needs scores and gold of the same subsets, one at least. Got "
            f"{len(scores)} and {len(gold)}."
        )
    each = [spearman(*subset) for subset in zip(scores, gold, strict=True)]
    if how == "mean":
        return float(np.mean(each))
    if how == "wmean":
        return float(np.average(each, weights=[np.size(subset) for subset in gold]))
    return spearman(np.concatenate(_arrays(scores)), np.concatenate(_arrays(gold)))


def _arrays(values: Sequence[ArrayLike]) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    return [np.asarray(subset, dtype=np.float64) for subset in values]
