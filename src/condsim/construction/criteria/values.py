"""Which values of a criterion are alike, which are different, and which are neither."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from condsim.construction.criteria.settings import CriterionSettings, Value
from condsim.errors import InputError, unknown_name
from condsim.tasks import shown

_PART = re.compile(r"[^\W_]+|[$£€¥%]")
_POSSESSIVE = re.compile("['\u2019]s\\b")  # \u2019: the curly apostrophe
_ARTICLES = frozenset(("a", "an", "the"))
_NEGATIONS = frozenset(("no", "not", "non", "never", "without"))
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_POLES = frozenset(("positive", "negative"))


def canonical_value(value: Value) -> str:
    """Gives the words in lower case, without articles and possessives, small numbers as digits.

    Example:
        >>> canonical_value("The Eagle's nest"), canonical_value("two-seater")
        ('eagle nest', '2 seater')
    """
    text = str(value).lower()
    words = [word for word in _PART.findall(_POSSESSIVE.sub("", text)) if word not in _ARTICLES]
    return " ".join(_NUMBERS.get(word, word) for word in words) or text


class Criterion:
    """A criterion: its name and how its values compare.

    What a text says of a criterion, one value or several, is an *answer*, known by its number.

    Attributes:
        name: The criterion.
        steps: Grades between the most and the least alike: 1 where answers are alike or different.
    """

    def __init__(
        self,
        name: str,
        answers: Iterable[Sequence[str]],
        settings: CriterionSettings,
        *,
        texts: Sequence[int] | None = None,
        bins: int | None = None,
    ) -> None:
        """Reads the answers, each one value or more, and how many texts give each (None: one)."""
        self.name = name
        self.steps = 1
        self._ranks: list[int] = []
        self._parts: list[tuple[frozenset[str], ...]] = []
        self._values: list[frozenset[str]] = []
        self._near: set[tuple[str, str]] = set()
        self._known: dict[tuple[int, int], int | None] = {}
        given = [tuple(answer) for answer in answers]
        if settings.order is not None:
            self._numbers = self._by_rank(given, settings)
        elif bins is not None and _are_numbers(given):
            self._numbers = self._by_size(given, texts or [1] * len(given), bins)
        elif settings.bins is not None:
            raise InputError(f"Criterion {name!r} has 'bins' and its values are no numbers.")
        else:
            self._numbers = self._by_name(given, settings)

    def numbers(self) -> tuple[int, ...]:
        """The number of each answer that was given, in order; -1 for one that is not used."""
        return tuple(self._numbers)

    def distance(self, answer1: int, answer2: int) -> int | None:
        """Compares two answers by their numbers, 0 or above.

        Returns:
            0 if they are alike, `steps` if they are as different as can be; None if neither can be
            said, as of "New York" and "New York City", or of answers that share some values.
        """
        if answer1 == answer2:
            return 0
        if self._ranks:
            return abs(self._ranks[answer1] - self._ranks[answer2])
        key = (answer1, answer2) if answer1 < answer2 else (answer2, answer1)
        if key not in self._known:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known[key] = None if self._overlap(*key) else 1
        return self._known[key]

    def _overlap(self, one: int, two: int) -> bool:
        """Whether a value of one answer may mean the same as one of the other."""
        if self._values[one] & self._values[two]:
            return True
        if self._near and any(
            (a, b) in self._near for a in self._values[one] for b in self._values[two]
        ):
            return True
        return any(
            (a <= b or b <= a) and not (a ^ b) & _NEGATIONS
            for a in self._parts[one]
            for b in self._parts[two]
        )

    def _by_name(self, given: Sequence[Sequence[str]], settings: CriterionSettings) -> list[int]:
        same = {
            canonical_value(value): canonical_value(group[0])
            for group in settings.same
            for value in group
        }
        for group in settings.near:
            near = {same.get(word, word) for word in map(canonical_value, group)}
            self._near |= {pair for a, b in combinations(near, 2) for pair in ((a, b), (b, a))}
        skipped = {canonical_value(value) for value in settings.skip or ()}
        answers = [frozenset(map(canonical_value, answer)) for answer in given]
        poles = settings.skip is None and all(
            any(pole in answer for answer in answers) for pole in _POLES
        )
        known: dict[frozenset[str], int] = {}
        numbers = []
        for answer in answers:
            if answer & skipped or (poles and (len(answer) > 1 or not answer <= _POLES)):
                numbers.append(-1)
                continue
            values = frozenset(same.get(word, word) for word in answer)
            if values not in known:
                known[values] = len(known)
                self._values.append(values)
                self._parts.append(tuple(frozenset(word.split()) for word in values))
            numbers.append(known[values])
        return numbers

    def _by_rank(self, given: Sequence[Sequence[str]], settings: CriterionSettings) -> list[int]:
        order = [canonical_value(value) for value in settings.order or ()]
        rank = {word: place for place, word in enumerate(order)}
        for group in settings.same:
            known = [word for word in map(canonical_value, group) if word in rank]
            rank |= {canonical_value(value): rank[known[0]] for value in group if known}
        skipped = {canonical_value(value) for value in settings.skip or ()}
        self.steps, self._ranks = len(order) - 1, list(range(len(order)))
        numbers = []
        for answer in given:
            words = [canonical_value(value) for value in answer]
            if len(words) > 1 or words[0] in skipped:
                numbers.append(-1)
            elif words[0] in rank:
                numbers.append(rank[words[0]])
            else:
                raise InputError(
                    f"Criterion {self.name!r} has the value {shown(answer[0])}, and its 'order' "
                    "must list every value. Add it there or to 'skip'."
                )
        return numbers

    def _by_size(
        self, given: Sequence[Sequence[str]], texts: Sequence[int], bins: int
    ) -> list[int]:
        sizes = [float(answer[0]) for answer in given]
        edges = sorted(set(sizes))[1:]  # a number begins a bin of its own, if there are few
        if len(edges) >= bins:
            cuts = np.quantile(np.repeat(sizes, texts), [place / bins for place in range(1, bins)])
            edges = sorted({float(cut) for cut in cuts} - {min(sizes)})
        self.steps, self._ranks = max(len(edges), 1), list(range(len(edges) + 1))
        return [bisect_right(edges, size) for size in sizes]


_REMEMBERED = 1_000_000  # comparisons kept, about 200 MB


def is_number(value: str) -> bool:
    """Whether a value is a finite number."""
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _are_numbers(answers: Sequence[Sequence[str]]) -> bool:
    """Whether every answer is one number, and not all are the same."""
    return len(answers) > 1 and all(len(one) == 1 and is_number(one[0]) for one in answers)


def check_names(settings: Mapping[str, CriterionSettings], known: Iterable[str]) -> None:
    """Refuses settings of a criterion that is in no table."""
    names = set(known)
    for name in settings:
        if name not in names:
            raise unknown_name("criterion in the settings:", name, names)
