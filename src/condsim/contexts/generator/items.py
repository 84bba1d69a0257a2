"""What the generators read and write: units of given sentences, and targets."""

# A unit passes through the encoder by itself. With ``encoder: apart`` it is one sentence at one
# place of the context, so it serves every example in which the sentence stands at that place. With
# ``encoder: joint`` it is all given sentences of an example.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from condsim.contexts.corpus.vocabulary import Vocabulary
from condsim.contexts.settings import GENERATOR_TASKS, GeneratorSettings, GeneratorTask
from condsim.types import BoolArray, IntArray

_NO_SENTENCE = -1
PLACE_BITS = 8  # of a key, below the row of the sentence


@dataclass
class Units:
    """What is encoded: each unit once."""

    # A key stands for one sentence of the corpus at one place; it is -1 for any other unit.

    tokens: list[IntArray] = field(default_factory=list)
    places: list[IntArray] = field(default_factory=list)  # of each token's sentence, from the left
    keys: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass
class Items:
    """What is generated."""

    tasks: list[int] = field(default_factory=list)  # places in `GENERATOR_TASKS`
    units: list[tuple[int, ...]] = field(default_factory=list)  # that each is generated from
    targets: list[IntArray] = field(default_factory=list)  # token ids, end token included

    def __len__(self) -> int:
        return len(self.tasks)


class ItemBuilder:
    """Collects items, and the units they share."""

    def __init__(
        self, sentences: Mapping[int, IntArray], settings: GeneratorSettings, vocabulary: Vocabulary
    ) -> None:
        self._sentences = sentences  # tokens by number
        self._left, self._joint = settings.left, settings.encoder == "joint"
        self._end = np.array([vocabulary.end_id])
        self._separator = np.array([vocabulary.separator_id])
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._targets: dict[tuple[int, ...], IntArray] = {}
        self.units, self.items = Units(), Items()

    def add(self, task: GeneratorTask, centre: int, around: Sequence[int]) -> bool:
        """Adds an item, if there is anything to generate; -1 in ``around`` is no sentence."""
        left = self._left
        places = [*range(left), *range(left + 1, len(around) + 1)]
        near = list(zip(around, places, strict=True))
        if task == "centre":
            given, wanted = near, [(centre, left)]
        elif task == "left":
            given, wanted = [(centre, left), *near[left:]], near[:left]
        else:
            given, wanted = [*near[:left], (centre, left)], near[left:]
        numbers = tuple(number for number, _ in wanted if number != _NO_SENTENCE)
        if not numbers:
            return False
        known = [pair for pair in given if pair[0] != _NO_SENTENCE]
        # Where nothing is given, a unit of the end token alone.
        parts = [tuple(known)] if self._joint or not known else [(pair,) for pair in known]
        self.items.tasks.append(GENERATOR_TASKS.index(task))
        self.items.units.append(tuple([self._unit(part) for part in parts]))
        self.items.targets.append(self._target(numbers))
        return True

    def _unit(self, key: tuple[tuple[int, int], ...]) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.units)
            parts = [np.concatenate((self._sentences[number], self._end)) for number, _ in key]
            parts = parts or [self._end]
            places = [at for _, at in key] or [self._left]
            filled = [np.full(len(part), at) for part, at in zip(parts, places, strict=True)]
            number, place = key[0] if len(key) == 1 else (_NO_SENTENCE, 0)
            self.units.keys.append(number << PLACE_BITS | place if number >= 0 else _NO_SENTENCE)
            self.units.tokens.append(np.concatenate(parts))
            self.units.places.append(np.concatenate(filled))
        return found

    def _target(self, numbers: tuple[int, ...]) -> IntArray:
        found = self._targets.get(numbers)
        if found is None:
            parts = [self._sentences[numbers[0]]]
            for number in numbers[1:]:
                parts += [self._separator, self._sentences[number]]
            found = self._targets[numbers] = np.concatenate([*parts, self._end])
        return found


def ragged(rows: Sequence[IntArray], *, fill: int) -> tuple[IntArray, BoolArray]:
    """Pads arrays to one length: the values, ``(n, longest)``, and which are not padding."""
    lengths = np.array([len(row) for row in rows])
    inside = np.arange(lengths.max()) < lengths[:, None]
    values = np.full(inside.shape, fill, dtype=np.int64)
    values[inside] = np.concatenate(rows)
    return values, inside


def length_groups(
    lengths: IntArray, *, call: int, most: int, attended: IntArray | None = None
) -> list[IntArray]:
    """Splits rows, of lengths above 0, into groups padded to the longest row, at the least cost."""
    # ``attended``: tokens that each row attends to beside its own. Rows of near length are then put
    # together by these, and a quarter of them counts as tokens of the group.
    if not len(lengths):
        return []
    order = np.argsort(lengths, kind="stable")
    sizes, counts = np.unique(lengths, return_counts=True)
    before = np.concatenate([[0], np.cumsum(counts)])
    cost = np.zeros(len(sizes) + 1)
    first = np.zeros(len(sizes), dtype=np.int64)  # first length of the group that ends here
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
