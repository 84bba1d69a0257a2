"""Folds of a task for cross-validation, as AFS is evaluated with supervision (SSBC §4.4)."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.types import Task

IntArray = NDArray[np.int64]

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which rows belong together, and which of two is the higher.

    Attributes:
        pair_ids: Id of each row's sentence pair, from 0, ``(n,)``; -1 where the row is unlabelled.
            Ids follow the alphabetical order of the sentence pairs, not the order of the file.
        high: Row index of the higher-labelled row of each pair, ``(p,)``.
        low: Row index of its lower-labelled row, ``(p,)``.
        ties: Pairs of rows of one sentence pair whose labels are equal; they are in no pair.
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

    The result does not depend on the order of the rows in the file, except that it names rows by
    their index. The counts are logged in one line at level info (logger ``condsim``).

    Args:
        task: The rows; those without a label take no part.

    Returns:
        The pairs, ordered by sentence pair, then from the highest labels down.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(task.valid).tolist():
        groups[task.sentences1[row], task.sentences2[row]].append(row)

    labels: list[float] = task.labels.tolist()
    pair_ids = np.full(len(task), -1, np.int64)
    high: list[int] = []
    low: list[int] = []
    ties = lone_rows = larger_groups = 0
    for pair_id, key in enumerate(sorted(groups)):
        rows = _ordered(task, groups[key], labels)
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


def _ordered(task: Task, rows: list[int], labels: list[float]) -> list[int]:
    """Orders rows of one sentence pair by label, highest first, then by condition."""
    conditions = task.conditions
    return sorted(rows, key=lambda row: (-labels[row], conditions[row] if conditions else ""))


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
