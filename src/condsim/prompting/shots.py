"""Shots: the labelled examples in a prompt (Deshpande et al., 2023, §4.2).

The two rows of a sentence pair are shown together, the more similar one first as in Figure 5, so
that the model sees what the condition changes. The pair that is asked about is never among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from condsim.errors import InputError
from condsim.prompting.prompt import Example
from condsim.tasks import pair_rows
from condsim.types import Task

Key = frozenset[str]
_WORD = re.compile(r"\w+")


class Shots:
    """Draws the examples of every prompt from a training file.

    All queries are shown the same examples; a query whose own pair is among them gets the next one
    of the same seeded order. So a prompt depends on the seed and on its own row only.

    Attributes:
        count: Number of examples k.
        seed: Seed of the draw.
        conditional: Whether the examples have conditions.
    """

    def __init__(self, train: Task, count: int, *, seed: int = 0) -> None:
        """Draws the order of the pairs.

        Args:
            train: Labelled rows. With conditions, those of one sentence pair whose labels differ
                make a pair of examples; without, every row is an example.
            count: Number of examples k. If it is odd and there are conditions, the last pair shows
                its more similar row alone.
            seed: Seed of the draw, not negative.

        Raises:
            InputError: If k is negative, or the file has no labels or too few pairs. One pair more
                than is shown is needed, since a query's own pair may be in the file.
        """
        if count < 0:
            raise InputError(f"The number of examples must not be negative. Got {count} instead.")
        groups = _groups(train) if count else {}
        per_group = 1 if train.conditions is None else 2
        needed = -(-count // per_group) + 1 if count else 0
        if len(groups) < needed:
            what = "labelled rows" if per_group == 1 else "sentence pairs with two unlike labels"
            raise InputError(
                f"{train.name}: {count} examples need {needed} {what}, one of them in reserve for "
                f"a query whose own pair is drawn. Got {len(groups)}. Ask for fewer examples or "
                "give a larger training file."
            )
        keys = list(groups)
        order = np.random.default_rng(seed).permutation(len(keys))[:needed].tolist()
        self.count = count
        self.seed = seed
        self.conditional = train.conditions is not None
        self._groups = {keys[place]: groups[keys[place]] for place in order}
        self._task = train

    def for_query(self, sentence1: str, sentence2: str) -> list[Example]:
        """Gives the examples of a query.

        Returns:
            The examples, none of which has these two sentences in either order, ``count`` of them.
        """
        own = _key(sentence1, sentence2)
        rows: Iterator[int] = (
            row for key, group in self._groups.items() if key != own for row in group
        )
        return [self._example(row) for row, _ in zip(rows, range(self.count), strict=False)]

    def _example(self, row: int) -> Example:
        task = self._task
        return Example(
            task.sentences1[row],
            task.sentences2[row],
            None if task.conditions is None else task.conditions[row],
            float(task.labels[row]),
        )


def _groups(train: Task) -> dict[Key, tuple[int, ...]]:
    """Rows that are shown together, by sentence pair, in an order that is not that of the file."""
    if not train.valid.any():
        raise InputError(
            f"{train.name}: examples are shown with their labels, and no row has one. Give a "
            "labelled training file."
        )
    pairs = zip(train.sentences1, train.sentences2, strict=True)
    keys = [_key(*pair) for pair in pairs]
    groups: dict[Key, tuple[int, ...]] = {}
    if train.conditions is None:
        rows = sorted(np.flatnonzero(train.valid).tolist(), key=lambda row: sorted(keys[row]))
        for row in rows:
            groups.setdefault(keys[row], (row,))
        return groups
    pairing = pair_rows(train)
    for high, low in zip(pairing.high.tolist(), pairing.low.tolist(), strict=True):
        groups.setdefault(keys[high], (high, low))
    return groups


def _key(sentence1: str, sentence2: str) -> Key:
    """Identifies a pair: the words of its sentences in either order, in any case."""
    return frozenset(" ".join(_WORD.findall(text.casefold())) for text in (sentence1, sentence2))
