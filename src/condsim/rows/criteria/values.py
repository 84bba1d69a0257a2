"""Values of a criterion: which answers are alike, which are different and which are neither."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, product

import numpy as np

from condsim.data.row import short_repr
from condsim.errors import InputError
from condsim.rows.criteria.settings import CriterionSettings, Value

# Words with a sign or a bound before them, and with the signs that end "C++" and "B-".
_VALUE_PART = re.compile(
    r"(?:(?<![^\W_])[-\u2212](?=\d)|[<>\u2264\u2265]=?\s*)?[^\W_]+(?:[+#]+|(?<=\b\w)-(?!\w))?|[$£€¥%]"
)
# \u2019 is the curly apostrophe.
_POSSESSIVE = re.compile("['\u2019]s\\b")
_ARTICLES = frozenset(("a", "an", "the"))
_NEGATIONS = frozenset(("no", "not", "non", "never", "without"))
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_DIGITS_OF = {word: str(number) for number, word in enumerate(_NUMBER_WORDS)}
_POLES = frozenset(("positive", "negative"))
# About 200 MB.
_COMPARISONS_CACHED = 1_000_000


def canonical_value(value: Value) -> str:
    """Write a value in lower case, without articles and possessives, small numbers as digits.

    A number is one word, and 1.0, which tables make of 1 where a cell is missing, is 1.
    """
    text = str(value).lower()
    if is_number(text):
        return re.sub(r"\.0+\Z", "", text.strip())
    parts = ("".join(part.split()) for part in _VALUE_PART.findall(_POSSESSIVE.sub("", text)))
    words = [_DIGITS_OF.get(part, part) for part in parts if part not in _ARTICLES]
    return " ".join(words) or text


def is_number(value: str) -> bool:
    """Return whether a value is a finite number."""
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


class Criterion:
    """A criterion whose answers, one value or more of a text, are numbered; -1 is not used.

    There are ``steps`` between alike and entirely different answers; 1 where nothing lies between.
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
        """Number the answers; ``texts`` counts the texts that give each, one if None."""
        self.name = name
        self.steps = 1
        self._is_ranked = True
        # The values of each answer by its number, and pairs of values that are nearly the same.
        self._values: list[frozenset[str]] = []
        self._near: set[frozenset[str]] = set()
        self._overlap = lru_cache(_COMPARISONS_CACHED)(self._may_be_the_same)
        rows = [tuple(answer) for answer in answers]
        all_numbers = len(rows) > 1 and all(len(row) == 1 and is_number(row[0]) for row in rows)
        if settings.order is not None:
            self.numbers = self._rank(rows, settings)
        elif bins is not None and all_numbers:
            self.numbers = self._cut_into_bins(rows, texts or [1] * len(rows), bins)
        elif settings.bins is not None:
            raise InputError(f"Criterion {name!r} has 'bins' and its values are not numbers.")
        else:
            self.numbers = self._name(rows, settings)

    def distance(self, answer1: int, answer2: int) -> int | None:
        """Return 0 for alike answers, up to `steps` for different ones, None where unknown.

        Unknown are "New York" and "New York City", answers that share some of their values, and
        answers that are not used.
        """
        if min(answer1, answer2) < 0:
            return None
        if answer1 == answer2:
            return 0
        if self._is_ranked:
            return abs(answer1 - answer2)
        return None if self._overlap(min(answer1, answer2), max(answer1, answer2)) else 1

    def _may_be_the_same(self, answer1: int, answer2: int) -> bool:
        for value1, value2 in product(self._values[answer1], self._values[answer2]):
            words1, words2 = set(value1.split()), set(value2.split())
            is_contained = words1 <= words2 or words2 <= words1
            is_negated = bool((words1 ^ words2) & _NEGATIONS)
            if (is_contained and not is_negated) or frozenset((value1, value2)) in self._near:
                return True
        return False

    def _name(self, rows: Sequence[Sequence[str]], settings: CriterionSettings) -> list[int]:
        """Number answers by the names of their values."""
        self._is_ranked = False
        same = {
            canonical_value(value): canonical_value(group[0])
            for group in settings.same
            for value in group
        }
        for group in settings.near:
            near_values = {same.get(word, word) for word in map(canonical_value, group)}
            self._near.update(map(frozenset, combinations(near_values, 2)))
        skipped = {canonical_value(value) for value in settings.skip or ()}
        answers = [frozenset(map(canonical_value, row)) for row in rows]
        has_poles = settings.skip is None and frozenset().union(*answers) >= _POLES
        numbers: dict[frozenset[str], int] = {}
        result = []
        for answer in answers:
            if answer & skipped or (has_poles and (len(answer) > 1 or not answer <= _POLES)):
                result.append(-1)
                continue
            values = frozenset(same.get(word, word) for word in answer)
            result.append(numbers.setdefault(values, len(numbers)))
        self._values = list(numbers)
        return result

    def _rank(self, rows: Sequence[Sequence[str]], settings: CriterionSettings) -> list[int]:
        """Number answers by their place in the order of the settings."""
        order = [canonical_value(value) for value in settings.order or ()]
        ranks = {word: rank for rank, word in enumerate(order)}
        for group in settings.same:
            ranked = [word for word in map(canonical_value, group) if word in ranks]
            ranks |= {canonical_value(value): ranks[ranked[0]] for value in group if ranked}
        skipped = {canonical_value(value) for value in settings.skip or ()}
        self.steps = len(order) - 1
        numbers = []
        for row in rows:
            word = canonical_value(row[0])
            is_used = len(row) == 1 and word not in skipped
            if is_used and word not in ranks:
                raise InputError(
                    f"Criterion {self.name!r} has the value {short_repr(row[0])}, which its "
                    "'order' does not list; add it there or to 'skip'."
                )
            numbers.append(ranks[word] if is_used else -1)
        return numbers

    def _cut_into_bins(
        self, rows: Sequence[Sequence[str]], texts: Sequence[int], bins: int
    ) -> list[int]:
        """Number answers by the quantile of the texts that they are in."""
        values = [float(row[0]) for row in rows]
        # Where there are few values, each begins a separate bin.
        edges = sorted(set(values))[1:]
        if len(edges) >= bins:
            cuts = np.quantile(np.repeat(values, texts), np.arange(1, bins) / bins)
            edges = sorted(set(cuts.tolist()) - {min(values)})
        self.steps = max(len(edges), 1)
        return [bisect_right(edges, value) for value in values]
