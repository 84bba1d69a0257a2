"""Carries a model's scale and its applicability head over to the model adapted from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condsim.scorers import (
    PROBE,
    ApplicabilityHead,
    Calibration,
    EmbeddingScorer,
    features,
    fit_calibration,
)
from condsim.training.adapting.rehearsal import Pairs
from condsim.types import Task

_PENALTY = 0.1  # on the change of a weight, per row; the features have a spread of about 1


def mixed_conditions(pairs: Pairs, *, most: int, seed: int) -> Pairs:
    """Some pairs, half of them under the condition of another, which mostly does not apply."""
    random = np.random.default_rng(seed)
    drawn = [pairs[place] for place in random.permutation(len(pairs))[:most].tolist()]
    half = len(drawn) // 2
    moved = [drawn[place][2] for place in (np.arange(half) + 1) % max(half, 1)]
    other = [(one[0], one[1], condition) for one, condition in zip(drawn, moved, strict=False)]
    return (*other, *drawn[half:])


def carried_calibration(
    before: EmbeddingScorer, after: EmbeddingScorer, pairs: Pairs, dev: Task
) -> Calibration:
    """Fits the map to [0, 1] so that pairs keep their scores and dev rows get their labels."""
    columns = tuple(zip(*pairs, strict=True))
    kept = before.score(*columns, scale="unit")
    raw = after.score(*columns, scale="raw")
    own = after.score(dev.sentences1, dev.sentences2, dev.conditions, scale="raw")
    return fit_calibration(np.concatenate([raw, own]), np.concatenate([kept, dev.gold]))


def carried_head(
    before: EmbeddingScorer, after: EmbeddingScorer, pairs: Pairs
) -> ApplicabilityHead | None:
    """Changes the weights of a head so that it says the same of pairs as the model before.

    The change is a ridge regression of the logits; where the embeddings did not move, it is 0.
    """
    head = before.head
    if head is None:
        return None
    columns = tuple(map(list, zip(*pairs, strict=True)))
    wanted = features(before.embedded(*columns)) @ head.weights + head.bias  # (n,)
    values = features(after.embedded(*columns))  # (n, f)
    change, shift = _ridge(values, wanted - (values @ head.weights + head.bias))
    facts = {**head.facts, "carried_over_from": before.name}
    return ApplicabilityHead(
        model=after.name,
        weights=head.weights + change,
        bias=head.bias + shift,
        probe=after.encode(*PROBE),
        facts=facts,
    )


def _ridge(
    values: NDArray[np.float64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Weights ``(f,)`` and constant of a ridge regression."""
    centre, level = values.mean(axis=0), float(wanted.mean())
    shown = values - centre
    # The dual form: as many equations as rows.
    gram = shown @ shown.T + _PENALTY * len(shown) * np.eye(len(shown))
    weights = shown.T @ np.linalg.solve(gram, wanted - level)
    return weights, level - float(centre @ weights)
