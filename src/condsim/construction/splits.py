"""Train, validation and test split, 60 : 15 : 25 as in C-STS §3, with no sentence in two of them.

The released C-STS keeps sentence pairs whole and lets single sentences cross: 718 sentences of the
re-annotated train file are in its validation file. Here groups of connected pairs are kept whole;
the pair-only grouping is an option.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from condsim.construction.groups import communities, pair_groups, sentence_groups
from condsim.errors import InputError
from condsim.types import IntArray

__all__ = ["RATIOS", "SPLITS", "SplitRules", "Splitting", "split_rows"]

SPLITS = ("train", "validation", "test")
"""The splits, in the order of the ratios."""

RATIOS = (60.0, 15.0, 25.0)
"""C-STS §3."""

OFF_BY = 0.02
"""A split that is this share of all rows from its ratio is warned of."""

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True)
class SplitRules:
    """How rows are split.

    Attributes:
        ratios: Train, validation and test, in any unit.
        seed: Seed of the draw.
        group: ``sentence``: no sentence is in two splits; ``pair``: no sentence pair is, which is
            what the paper's splits keep to.
        oversize: What becomes of a group with more rows than the smallest split should have, by
            ``sentence``: ``keep`` leaves it whole, so the ratios may be missed; ``cut`` divides it
            into communities and drops the rows whose two sentences end in different splits.
    """

    ratios: tuple[float, float, float] = RATIOS
    seed: int = 0
    group: Literal["sentence", "pair"] = "sentence"
    oversize: Literal["keep", "cut"] = "keep"

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            InputError: If a ratio is not above 0 or the seed is below 0.
        """
        if not all(0 < ratio < np.inf for ratio in self.ratios) or self.seed < 0:
            raise InputError(
                "A split needs three 'ratios' above 0 and a 'seed' of 0 or more. Got "
                f"{':'.join(f'{ratio:g}' for ratio in self.ratios)} and {self.seed}."
            )


@dataclass(frozen=True, eq=False)
class Splitting:
    """Which row is in which split.

    Attributes:
        split: Number of each row's split in :data:`SPLITS`, ``(n,)``; -1 where the row is dropped
            because its sentences are in two.
        groups: How many groups there were, before any was cut.
        largest: Rows of the largest of them.
        cut: Groups that were cut.
    """

    split: IntArray
    groups: int
    largest: int
    cut: int

    def rows(self, split: int) -> int:
        """Counts the rows of a split.

        Args:
            split: Its number in :data:`SPLITS`, or -1 for dropped rows.

        Returns:
            The number of rows.
        """
        return int((self.split == split).sum())


def split_rows(pairs: Sequence[tuple[str, str]], rules: SplitRules) -> Splitting:
    """Splits rows by their sentence pairs.

    The larger groups are placed first, each in the split that is furthest below its share and has
    room for it, in an order that the seed decides among groups of one size. The order of the rows
    does not matter. A split that misses its ratio by more than 2 % of all rows is warned of
    (logger ``condsim``).

    Args:
        pairs: Both sentences of each row, length n.
        rules: How.

    Returns:
        The split of each row.

    Raises:
        InputError: If a split would have no rows.
        MissingExtraError: If scipy, or networkx for cutting, is not installed.
    """
    groups = pair_groups(pairs) if rules.group == "pair" else sentence_groups(pairs)
    sizes = np.bincount(groups, minlength=1)
    targets = np.array(rules.ratios) / sum(rules.ratios) * len(pairs)  # (3,), rows
    cut: IntArray = np.zeros(0, np.int64)
    if rules.oversize == "cut" and rules.group == "sentence":
        cut = np.flatnonzero(sizes > targets.min())
    if len(cut):
        split = _cut_and_place(pairs, groups, cut, targets, seed=rules.seed)
    else:
        split = _place(sizes, targets, seed=rules.seed)[groups]
    made = Splitting(split, groups=len(sizes), largest=int(sizes.max()), cut=len(cut))
    _check(made, targets, rules)
    return made


def _place(sizes: IntArray, targets: np.ndarray, *, seed: int) -> IntArray:
    """The split of each group from its rows, ``(groups,)``."""
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    order = drawn[np.argsort(-sizes[drawn], kind="stable")]
    filled = np.zeros(len(targets))
    split = np.zeros(len(sizes), np.int64)
    for group in order.tolist():
        missing = targets - filled
        has_room = missing >= sizes[group]
        wanting = missing / targets + 2.0 * has_room  # one with room goes before any without
        best = np.flatnonzero(wanting >= wanting.max() - 1e-12)
        split[group] = best[np.argmax(targets[best])]
        filled[split[group]] += sizes[group]
    return split


def _cut_and_place(
    pairs: Sequence[tuple[str, str]],
    groups: IntArray,
    cut: IntArray,
    targets: np.ndarray,
    *,
    seed: int,
) -> IntArray:
    """The split of each row when some groups are placed community by community, ``(n,)``."""
    first, second = groups.copy(), groups.copy()  # the part of each sentence
    parts = int(groups.max()) + 1
    for group in cut.tolist():
        rows = np.flatnonzero(groups == group)
        found = communities([pairs[row] for row in rows.tolist()], seed=seed)  # (rows, 2)
        first[rows], second[rows] = found[:, 0] + parts, found[:, 1] + parts
        parts += int(found.max()) + 1
    # A row between two communities counts for its first: most such rows are kept or lost in both.
    split = _place(np.bincount(first, minlength=parts), targets, seed=seed)
    return np.where(split[first] == split[second], split[first], -1)


def _check(made: Splitting, targets: np.ndarray, rules: SplitRules) -> None:
    kept = len(made.split) - made.rows(-1)
    for number, name in enumerate(SPLITS):
        rows = made.rows(number)
        share = rows / max(1, kept)
        wanted = targets[number] / targets.sum()
        if not rows:
            raise InputError(
                f"Splits: {name} would have no rows. {len(made.split)} rows are {made.groups} "
                f"groups that must stay whole, the largest of {made.largest} rows"
                f"{_advice(made, rules)}."
            )
        if abs(share - wanted) > OFF_BY:
            _LOGGER.warning(
                "%s has %.1f %% of the rows, not %.1f %%: the largest of %d groups that must stay "
                "whole has %d rows%s",
                name,
                100 * share,
                100 * wanted,
                made.groups,
                made.largest,
                _advice(made, rules),
            )


def _advice(made: Splitting, rules: SplitRules) -> str:
    if made.cut:
        return f", and cutting groups lost {made.rows(-1)} rows; give more sentence pairs"
    if rules.group == "sentence" and rules.oversize == "keep" and made.largest > 2:
        return "; give --oversize cut, or --group pair, or more sentence pairs"
    return "; give more sentence pairs"
