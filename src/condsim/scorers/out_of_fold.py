"""Baselines fitted and measured on one file, honestly: each row predicted by a fit without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.scorers.baselines import baseline
from condsim.types import FloatArray, Task

__all__ = ["assign_folds", "out_of_fold"]


def out_of_fold(
    task: Task, *, name: str = "condition-only", folds: int = 10, seed: int = 0
) -> FloatArray:
    """Predicts each row with a baseline fitted on the other folds of the same file.

    The rows of a sentence pair are always in one fold, so no row is predicted by a fit that has
    seen its sentences. Fitted on a separate train file the baseline is usually stronger.

    Args:
        task: The rows to predict; those with a label are also the ones learnt from.
        name: A name in :data:`condsim.scorers.baselines.BASELINES`.
        folds: Number of folds, at least 2; the last are empty if there are fewer sentence pairs.
        seed: Seed of the split; the order of the rows plays no part.

    Returns:
        A prediction for every row, in [0, 1], ``(n,)``; 0.5 where no other fold has a label.

    Raises:
        InputError: If ``folds`` is below 2 or no baseline has this name.
    """
    if folds < 2:
        raise InputError(f"The number of folds must be at least 2. Got {folds}.")
    fold = assign_folds(task, folds=folds, seed=seed)
    predictions = np.full(len(task), 0.5, dtype=np.float32)
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        rest = replace(task, labels=np.where(fold == number, np.float32(np.nan), task.labels))
        if rows.size == 0 or not rest.valid.any():
            continue
        conditions = task.conditions
        predictions[rows] = baseline(name, train=rest).score(
            [task.sentences1[row] for row in rows],
            [task.sentences2[row] for row in rows],
            [conditions[row] for row in rows] if conditions else None,
        )
    return predictions


def assign_folds(task: Task, *, folds: int, seed: int) -> NDArray[np.int64]:
    """Draws the fold of each row; sentence pairs are kept whole.

    Args:
        task: The rows.
        folds: Number of folds, at least 2.
        seed: Seed of the split; the order of the rows plays no part.

    Returns:
        The folds, ``(n,)``, each in [0, folds).
    """
    pairs = list(zip(task.sentences1, task.sentences2, strict=True))
    distinct = sorted(set(pairs))
    shuffled = np.random.default_rng(seed).permutation(len(distinct)) % folds
    fold = dict(zip(distinct, shuffled.tolist(), strict=True))
    return np.asarray([fold[pair] for pair in pairs], dtype=np.int64)
