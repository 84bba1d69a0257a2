"""Folds of a task for cross-validation, as AFS is evaluated with supervision (SSBC §4.4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condsim.errors import InputError
from condsim.types import Task

__all__ = ["Fold", "cross_validation"]


class Fold(NamedTuple):
    """One of the parts a task is split into.

    Attributes:
        train: The rows of all other folds.
        test: The rows of this fold.
    """

    train: Task
    test: Task


def cross_validation(task: Task, *, folds: int = 10, seed: int = 0) -> tuple[Fold, ...]:
    """Splits the labelled rows of a task for cross-validation.

    Which rows make up a fold depends on the seed and on the sentence pairs, not on the order of
    the rows; rows of one sentence pair, in either order, are in one fold. A sentence may be in
    pairs of several folds: those of AFS mostly are, as in all published results on its pairs.

    Args:
        task: The rows.
        folds: Number of folds, at least 2.
        seed: Seed of the split, 0 or more.

    Returns:
        The folds, named after the task; their sizes differ by one sentence pair at most.

    Raises:
        InputError: If ``folds`` is below 2, ``seed`` below 0, or there are fewer labelled sentence
            pairs than folds.
    """
    if folds < 2 or seed < 0:
        raise InputError(
            "Cross-validation needs at least 2 'folds' and a 'seed' of 0 or more. Got "
            f"{folds} and {seed}."
        )
    task = task.labelled()
    pairs = [tuple(sorted(pair)) for pair in zip(task.sentences1, task.sentences2, strict=True)]
    distinct = sorted(set(pairs))
    if len(distinct) < folds:
        raise InputError(
            f"{task.name}: {folds} folds need as many labelled sentence pairs. Got "
            f"{len(distinct)}; ask for fewer folds."
        )
    drawn = np.random.default_rng(seed).permutation(len(distinct)) % folds
    fold_of = dict(zip(distinct, drawn.tolist(), strict=True))
    fold = np.array([fold_of[pair] for pair in pairs])
    return tuple(
        Fold(task.take(np.flatnonzero(fold != number)), task.take(np.flatnonzero(fold == number)))
        for number in range(folds)
    )
