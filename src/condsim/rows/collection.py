"""Texts and pairs collected from a table to draw rows from, with the answers of each criterion."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.row import short_repr
from condsim.data.tables import CriteriaPair, CriteriaText
from condsim.errors import InputError
from condsim.rows.settings import CriteriaSettings, CriterionSettings, Value

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

_WORD = re.compile(r"[^\W_]+")
# Words in a larger share of the texts say little about a text.
_MAX_SHARE_OF_WORD = 0.02
# Labels of pairs between 0 and 1 are rounded to this many steps.
_STEPS_OF_LABELS = 4


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


class ComparedCriterion:
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


Item = TypeVar("Item")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def word_overlap(words1: frozenset[str], words2: frozenset[str]) -> float:
    """Return the shared words by all words of both, 0 to 1."""
    shared = len(words1 & words2)
    return shared / max(1, len(words1) + len(words2) - shared)


@dataclass(frozen=True, eq=False, kw_only=True)
class Collected:
    """Texts that rows can be drawn from; no two differ in case and punctuation alone."""

    name: str
    texts: Sequence[str]
    # Grades of each criterion that can be used; see `ComparedCriterion.steps`.
    steps: dict[str, int]
    # Criteria that cannot be used.
    unused: Sequence[str]
    # Texts or pairs that are ``excluded`` since they are held out, or ``repeated``.
    left_out: Counter[str]


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectedTexts(Collected):
    """Texts that share criteria, each with two answers or more that have two texts or more."""

    criteria: Sequence[ComparedCriterion]
    # Number of each text's answer, -1 where there is none, (criteria, texts).
    answers: NDArray[np.int32]

    def by_answer(self, criterion: int) -> list[NDArray[np.int32]]:
        """Return the texts with each answer, which may be none."""
        texts = np.flatnonzero(self.answers[criterion] >= 0).astype(np.int32)
        return _group_by_number(texts, self.answers[criterion, texts])

    def by_word(self) -> dict[str, NDArray[np.int32]]:
        """Return the texts with each word that occurs in several of them but not in many."""
        numbers: dict[str, int] = {}
        words, texts = array("i"), array("i")
        for index, text in enumerate(self.texts):
            text_words = sorted(word_set(text))
            words.extend(numbers.setdefault(word, len(numbers)) for word in text_words)
            texts.extend([index] * len(text_words))
        texts_of = _group_by_number(np.frombuffer(texts, np.int32), np.frombuffer(words, np.int32))
        most = max(20, round(_MAX_SHARE_OF_WORD * len(self.texts)))
        return {word: texts_of[n] for word, n in numbers.items() if 1 < len(texts_of[n]) <= most}


def _group_by_number(
    texts: NDArray[np.int32], numbers: NDArray[np.int32]
) -> list[NDArray[np.int32]]:
    """Group texts by their numbers, which start at 0."""
    ends = np.cumsum(np.bincount(numbers))
    return np.split(texts[np.argsort(numbers, kind="stable")], ends[:-1])


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectedPairs(Collected):
    """Pairs of texts, one after the other, with labels from 0 to 1 by criterion."""

    labels: list[dict[str, float]]


def collect_texts(
    items: Iterable[CriteriaText],
    settings: CriteriaSettings,
    *,
    name: str,
    held_out: HeldOutTexts,
    refuse_numbers: bool = False,
) -> CollectedTexts:
    """Collect texts; raise `InputError` if no criterion can be used.

    Numbers that no setting names, such as a price, may be refused.
    """
    texts: list[str] = []
    # The texts with each answer, by criterion.
    texts_of: defaultdict[str, defaultdict[tuple[str, ...], array[int]]]
    texts_of = defaultdict(lambda: defaultdict(lambda: array("i")))
    left_out: Counter[str] = Counter()
    for item in _fresh(items, lambda item: (item.text,), held_out, left_out):
        for criterion, values in item.attributes.items():
            texts_of[criterion][values].append(len(texts))
        texts.append(item.text)
    criteria: list[ComparedCriterion] = []
    answers: list[NDArray[np.int32]] = []
    for criterion, members in sorted(texts_of.items()):
        is_named = not refuse_numbers or criterion in settings.criteria
        # Numbers that no two texts share, such as ticket numbers, cannot be a criterion.
        is_shared = any(len(own_texts) > 1 for own_texts in members.values())
        if is_shared and not is_named and all(map(is_number, chain.from_iterable(members))):
            raise InputError(
                f"{name}: the column {criterion!r} holds numbers, which are not just alike or "
                "different; grade them with --bins, or name the columns to use with --criteria."
            )
        own = settings.of(criterion)
        if own.leave_out or len(members) < 2:
            continue
        counts = list(map(len, members.values()))
        compared = ComparedCriterion(
            criterion, members, own, texts=counts, bins=own.bins or settings.bins
        )
        numbers = np.full(len(texts), -1, np.int32)
        for number, texts_with_answer in zip(compared.numbers, members.values(), strict=True):
            numbers[np.frombuffer(texts_with_answer, np.int32)] = number
        if (np.bincount(numbers[numbers >= 0]) > 1).sum() > 1:
            criteria.append(compared)
            answers.append(numbers)
    if not criteria:
        rule, total = "two values that two texts each have", f"{len(texts):,} texts"
        raise _no_criterion(name, rule, total, left_out, texts_of)
    steps = {criterion.name: criterion.steps for criterion in criteria}
    return CollectedTexts(
        name=name,
        texts=texts,
        steps=steps,
        unused=sorted(texts_of.keys() - steps.keys()),
        left_out=left_out,
        criteria=criteria,
        answers=np.stack(answers),
    )


def collect_pairs(
    items: Iterable[CriteriaPair], settings: CriteriaSettings, *, name: str, held_out: HeldOutTexts
) -> CollectedPairs:
    """Collect labeled pairs; raise `InputError` if no criterion can be used."""
    texts: list[str] = []
    labels: list[dict[str, float]] = []
    values: defaultdict[str, set[float]] = defaultdict(set)
    left_out: Counter[str] = Counter()
    for item in _fresh(items, lambda item: (item.text1, item.text2), held_out, left_out):
        texts += (item.text1, item.text2)
        labels.append(dict(item.labels))
        for criterion, label in item.labels.items():
            values[criterion].add(label)
    steps = {
        criterion: 1 if values[criterion] <= {0, 1} else _STEPS_OF_LABELS
        for criterion in sorted(values)
        if min(values[criterion]) <= 0.5 < max(values[criterion])
        and not settings.of(criterion).leave_out
    }
    if not steps:
        rule, total = "a pair that is alike and one that is not", f"{len(labels):,} pairs"
        raise _no_criterion(name, rule, total, left_out, values)
    unused = sorted(values.keys() - steps.keys())
    return CollectedPairs(
        name=name, texts=texts, steps=steps, unused=unused, left_out=left_out, labels=labels
    )


def _fresh(
    items: Iterable[Item],
    texts_of: Callable[[Item], tuple[str, ...]],
    held_out: HeldOutTexts,
    left_out: Counter[str],
) -> Iterator[Item]:
    """Return the items that are not held out and did not come before; count the others."""
    seen: set[bytes] = set()
    for item in items:
        texts = texts_of(item)
        digests = set(map(text_digest, texts))
        key = b"".join(sorted(digests))
        if any(text in held_out for text in texts):
            left_out["excluded"] += 1
        elif key in seen or len(digests) < len(texts):
            left_out["repeated"] += 1
        else:
            seen.add(key)
            yield item


def _no_criterion(
    name: str, rule: str, total: str, left_out: Counter[str], criteria: Iterable[str]
) -> InputError:
    names = ", ".join(sorted(criteria))
    where = f"none among the criteria {names}" if names else "no column of values"
    return InputError(
        f"{name}: rows need a criterion with {rule}; the {total} ({left_out['excluded']:,} left "
        f"out, {left_out['repeated']:,} repeated) have {where}."
    )
