"""Vectors of the texts of a collection under a condition, and scores of their cosines.

Clusters, duplicates and searches make their vectors here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condsim.errors import InputError
from condsim.model.base import check_threshold, rescaled
from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray


def condition_vectors(
    scorer: EmbeddingScorer, texts: Sequence[str], condition: str | None, *, overall: float = 0.0
) -> FloatArray:
    """Encode texts under a condition as unit vectors, ``(n, d)``; None compares whole texts.

    With a share of the whole there are 2 d numbers; see `EmbeddingScorer.encode`.
    """
    if not overall or condition is None:
        return scorer.encode(list(texts), condition)
    return scorer.encode(list(texts), condition, overall=overall)


def width(scorer: EmbeddingScorer, condition: str | None, overall: float) -> int:
    """Return the length of a vector of `condition_vectors`."""
    return scorer.dimension * (2 if overall and condition is not None else 1)


def cosine_scores(scorer: EmbeddingScorer, cosines: FloatArray) -> FloatArray:
    """Turn cosines of such vectors into scores, in [0, 1]."""
    return rescaled(np.clip(cosines, -1, 1), scorer.calibration, "unit")


def lowest_cosine(scorer: EmbeddingScorer, score: float, *, argument: str) -> float:
    """Return the lowest cosine with a score; InputError names the argument if there is none."""
    check_threshold(score, argument=argument)
    calibration = scorer.calibration
    cosine = score if calibration is None else calibration.lowest_raw(score)
    if cosine > 1:
        highest = float(calibration.apply(1.0)) if calibration else 1.0
        raise InputError(
            f"No pair reaches a score of {score}: {scorer.name!r} gives {highest:.4f} at most. "
            f"Lower {argument!r}."
        )
    return cosine
