"""How often a scorer finds the anchor of a triplet nearer to its positive (SSBC §4.5)."""

from __future__ import annotations

import numpy as np

from condsim.errors import InputError, ModelError
from condsim.evaluation.bootstrap import bootstrap, percentile_interval
from condsim.evaluation.report import Metric
from condsim.scorers.scored_once import ScoredOnce
from condsim.tasks import Triplets
from condsim.types import Scorer

__all__ = ["triplet_accuracy"]


def triplet_accuracy(
    scorer: Scorer, triplets: Triplets, *, resamples: int = 1000, seed: int = 0
) -> Metric:
    """Measures a scorer on triplets.

    Raw similarities are compared, since a calibration makes one score of all that are very low or
    very high. Equal similarities count as wrong, as a constant scorer must not be right.

    Args:
        scorer: The model.
        triplets: The triplets; a pair that is in several is scored each time.
        resamples: Number of bootstrap resamples of the triplets, at least 1.
        seed: Seed of the resamples.

    Returns:
        The accuracy in percent with its 95 % interval.

    Raises:
        InputError: If there are no triplets or ``resamples`` is below 1.
        ModelError: If the scorer returns another number of scores than rows, NaN or infinity.
    """
    if not len(triplets):
        raise InputError(f"{triplets.name}: has no triplets. Give at least one.")
    pairs = triplets.pairs()
    scores = ScoredOnce(scorer).score(pairs.sentences1, pairs.sentences2, None, scale="raw")
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise ModelError(
            f"{scorer.name}: score must return one finite number for each row, ({len(pairs)},). "
            f"Got the shape {scores.shape}, {int((~np.isfinite(scores)).sum())} not finite."
        )
    right = (scores[: len(triplets)] > scores[len(triplets) :]).astype(np.float64)  # (n,)
    draws = bootstrap(
        lambda weights: weights @ right / right.size,
        np.arange(right.size),
        resamples=resamples,
        seed=seed,
    )
    return Metric(100 * triplets.accuracy(scores), *percentile_interval(100 * draws))
