"""Which rows belong together: the high-low pairs of C-STS, and folds that keep pairs whole."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from condsim.errors import InputError
from condsim.types import IntArray, Task

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which rows belong together, and which of two is the higher.

    Attributes:
        pair_ids: Id of each row's sentence pair, from 0 in alphabetical order, ``(n,)``; -1 where
            the row is unlabelled.
        high: Row index of the higher-labelled row of each pair, ``(p,)``.
        low: Row index of its lower-labelled row, ``(p,)``.
        ties: Pairs of rows of one sentence pair whose labels are equal, in no pair.
        lone_rows: Labelled rows whose sentence pair has no second labelled row.
        unlabelled_rows: Rows without a label, never paired.
        larger_groups: Sentence pairs with more than two labelled rows; every two of these rows
            whose labels differ are a pair.
    """

    pair_ids: IntArray
    high: IntArray
    low: IntArray
    ties: int
    lone_rows: int
    unlabelled_rows: int
    larger_groups: int

    @property
    def pairs(self) -> int:
        """Number p of pairs of rows whose labels differ."""
        return len(self.high)


def pair_rows(task: Task) -> Pairing:
    """Pairs the rows by equal (sentence1, sentence2) and by label.

    The order of the rows does not matter, except that the result names rows by their index. The
    counts are logged in one line at level info (logger ``condsim``).

    Args:
        task: The rows; those without a label take no part.

    Returns:
        The pairs, ordered by sentence pair, then from the highest labels down.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(task.valid).tolist():
        groups[task.sentences1[row], task.sentences2[row]].append(row)

    labels: list[float] = task.labels.tolist()
    conditions = task.conditions or ("",) * len(task)
    pair_ids = np.full(len(task), -1, np.int64)
    high: list[int] = []
    low: list[int] = []
    ties = lone_rows = larger_groups = 0
    for pair_id, key in enumerate(sorted(groups)):
        rows = sorted(groups[key], key=lambda row: (-labels[row], conditions[row]))
        lone_rows += len(rows) == 1
        larger_groups += len(rows) > 2
        pair_ids[rows] = pair_id
        for first, second in combinations(rows, 2):
            if labels[first] > labels[second]:
                high.append(first)
                low.append(second)
            else:
                ties += 1

    pairing = Pairing(
        pair_ids=pair_ids,
        high=np.array(high, np.int64),
        low=np.array(low, np.int64),
        ties=ties,
        lone_rows=lone_rows,
        unlabelled_rows=len(task) - int(task.valid.sum()),
        larger_groups=larger_groups,
    )
    if task.conditions is not None:  # without conditions there is nothing to contrast
        _LOGGER.info(
            "%s: %d high-low pairs, %d ties, %d lone rows, %d unlabelled rows, %d larger groups",
            task.name,
            pairing.pairs,
            ties,
            lone_rows,
            pairing.unlabelled_rows,
            larger_groups,
        )
    return pairing


class Fold(NamedTuple):
    """A fold to test on, and all other folds to train on."""

    train: Task
    test: Task


def cross_validation(task: Task, *, folds: int = 10, seed: int = 0) -> tuple[Fold, ...]:
    """Splits the labelled rows of a task for cross-validation, as AFS needs it (SSBC §4.4).

    Rows of one sentence pair, in either order, are in one fold, whatever the order of the rows. A
    sentence may be in pairs of several folds: those of AFS mostly are, as in all published results.

    Args:
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
    pairs = [(min(pair), max(pair)) for pair in zip(task.sentences1, task.sentences2, strict=True)]
    if len(set(pairs)) < folds:
        raise InputError(
            f"{task.name}: {folds} folds need as many labelled sentence pairs. Got "
            f"{len(set(pairs))}; ask for fewer folds."
        )
    fold = draw_folds(pairs, folds=folds, seed=seed)
    return tuple(
        Fold(task.take(np.flatnonzero(fold != number)), task.take(np.flatnonzero(fold == number)))
        for number in range(folds)
    )


def draw_folds(pairs: Sequence[tuple[str, str]], *, folds: int, seed: int) -> IntArray:
    """Draws the fold of each sentence pair; equal pairs share one.

    Args:
        pairs: The pairs, length n.
        folds: Number of folds, at least 2; the last are empty if there are fewer distinct pairs.
        seed: Seed of the draw.

    Returns:
        The folds, ``(n,)``, each in [0, folds).
    """
    distinct = sorted(set(pairs))
    drawn = np.random.default_rng(seed).permutation(len(distinct)) % folds
    fold_of = dict(zip(distinct, drawn.tolist(), strict=True))
    return np.array([fold_of[pair] for pair in pairs], np.int64)
