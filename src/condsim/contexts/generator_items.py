"""Inputs and targets of the generators.

A unit passes through the encoder by itself. With ``encoder: apart`` it is one sentence at one place
of the context, so it serves every example in which the sentence stands at that place. With
``encoder: joint`` it is all given sentences of an example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from condsim.contexts.recipe import GENERATOR_TASKS, GeneratorSettings, GeneratorTask
from condsim.contexts.vocabulary import Vocabulary
from condsim.types import BoolArray, IntArray

PLACE_BITS = 8
"""Bits of the place in the key of a unit, below the row of its sentence."""

_NO_SENTENCE = -1


@dataclass
class EncoderUnits:
    """Units to encode, each once.

    ``tokens`` and the place of each token's sentence, from the left; a key stands for one sentence
    of the corpus at one place, and is -1 for any other unit.
    """

    tokens: list[IntArray] = field(default_factory=list)
    places: list[IntArray] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass
class Items:
    """Targets to generate: place of the task in `GENERATOR_TASKS`, units given, token ids."""

    tasks: list[int] = field(default_factory=list)
    units: list[tuple[int, ...]] = field(default_factory=list)
    targets: list[IntArray] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tasks)


class ItemBuilder:
    """Collection of items, and of the units they share, of sentences given as tokens by number."""

    def __init__(
        self, sentences: Mapping[int, IntArray], settings: GeneratorSettings, vocabulary: Vocabulary
    ) -> None:
        self._sentences = sentences
        self._left, self._joint = settings.left, settings.encoder == "joint"
        self._end, self._separator = vocabulary.end_id, vocabulary.separator_id
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._targets: dict[tuple[int, ...], IntArray] = {}
        self.units, self.items = EncoderUnits(), Items()

    def add(self, task: GeneratorTask, centre: int, around: Sequence[int]) -> bool:
        """Add an item, if there is anything to generate; -1 in ``around`` means no sentence."""
        left = self._left
        places = [*range(left), *range(left + 1, len(around) + 1)]
        near = list(zip(around, places, strict=True))
        if task == "centre":
            inputs, outputs = near, [(centre, left)]
        elif task == "left":
            inputs, outputs = [(centre, left), *near[left:]], near[:left]
        else:
            inputs, outputs = [*near[:left], (centre, left)], near[left:]
        numbers = tuple(number for number, _ in outputs if number != _NO_SENTENCE)
        if not numbers:
            return False
        pairs = [pair for pair in inputs if pair[0] != _NO_SENTENCE]
        # Where no sentence is given, one unit of the end token alone.
        keys = [tuple(pairs)] if self._joint or not pairs else [(pair,) for pair in pairs]
        self.items.tasks.append(GENERATOR_TASKS.index(task))
        self.items.units.append(tuple([self._unit(key) for key in keys]))
        self.items.targets.append(self._target(numbers))
        return True

    def _unit(self, key: tuple[tuple[int, int], ...]) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.units)
            parts = [
                (np.append(self._sentences[number], self._end), place) for number, place in key
            ]
            parts = parts or [(np.array([self._end]), self._left)]
            number, place = key[0] if len(key) == 1 else (_NO_SENTENCE, 0)
            self.units.keys.append(number << PLACE_BITS | place if number >= 0 else _NO_SENTENCE)
            self.units.tokens.append(np.concatenate([tokens for tokens, _ in parts]))
            filled = [np.full(len(tokens), place) for tokens, place in parts]
            self.units.places.append(np.concatenate(filled))
        return self._numbers[key]

    def _target(self, numbers: tuple[int, ...]) -> IntArray:
        if numbers not in self._targets:
            parts = [np.append(self._sentences[number], self._separator) for number in numbers]
            self._targets[numbers] = np.concatenate(parts)
            self._targets[numbers][-1] = self._end
        return self._targets[numbers]


def pad_rows(rows: Sequence[IntArray], *, fill: int) -> tuple[IntArray, BoolArray]:
    """Pad arrays to one length: the values, ``(n, longest)``, and which are not padding."""
    lengths = np.array([len(row) for row in rows])
    inside = np.arange(lengths.max()) < lengths[:, None]
    values = np.full(inside.shape, fill, dtype=np.int64)
    values[inside] = np.concatenate(rows)
    return values, inside


def length_groups(
    lengths: IntArray, *, call: int, most: int, attended: IntArray | None = None
) -> list[IntArray]:
    """Split rows, of lengths above 0, into groups padded to the longest row, at the least cost.

    A group costs ``call`` tokens and its padded tokens, and has ``most`` of them. ``attended`` are
    the tokens that each row attends to in addition to its own: rows of similar length are then
    grouped by these, and a quarter of them counts as tokens of the group.
    """
    if not len(lengths):
        return []
    order = np.argsort(lengths, kind="stable")
    sizes, counts = np.unique(lengths, return_counts=True)
    before = np.concatenate([[0], np.cumsum(counts)])
    # Dynamic programming over the distinct lengths: the cheapest first length of the group that
    # ends at each.
    cost = np.zeros(len(sizes) + 1)
    first = np.zeros(len(sizes), dtype=np.int64)
    for last, size in enumerate(sizes):
        options = cost[: last + 1] + call + (before[last + 1] - before[: last + 1]) * size
        first[last] = int(options.argmin())
        cost[last + 1] = options[first[last]]
    groups: list[IntArray] = []
    last = len(sizes) - 1
    while last >= 0:
        rows = order[before[first[last]] : before[last + 1]]
        size = int(sizes[last])
        if attended is not None:
            rows = rows[np.argsort(attended[rows], kind="stable")]
            size += int(attended[rows].mean()) // 4
        parts = -(-len(rows) * size // most)
        groups += np.array_split(rows, min(parts, len(rows)))
        last = int(first[last]) - 1
    return groups[::-1]
