"""Texts and what each says of each criterion; which answers are alike, different or neither."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.row import shown
from condsim.data.tables import CriteriaText
from condsim.errors import InputError, unknown_name
from condsim.rows.criteria.settings import CriteriaSettings, CriterionSettings, Value

_PART = re.compile(  # words with a sign or a bound before, and what "C++" and "B-" end in
    r"(?:(?<![^\W_])[-\u2212](?=\d)|[<>\u2264\u2265]=?\s*)?[^\W_]+(?:[+#]+|(?<=\b\w)-(?!\w))?|[$£€¥%]"
)
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

    A number is one word, and 1.0, which tables make of 1 where a cell is missing, is 1.

    Example:
        >>> canonical_value("The Eagle's nest"), canonical_value("two-seater")
        ('eagle nest', '2 seater')
    """
    text = str(value).lower()
    if is_number(text):
        return re.sub(r"\.0+\Z", "", text.strip())
    parts = ("".join(part.split()) for part in _PART.findall(_POSSESSIVE.sub("", text)))
    words = [part for part in parts if part not in _ARTICLES]
    return " ".join(_NUMBERS.get(word, word) for word in words) or text


class Criterion:
    """A criterion: what a text says of it, one value or more, is an *answer*, with a number."""

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
        # grades between the most and the least alike: 1 where answers are alike or different
        self.steps = 1
        self._ranked = True  # whether the number of an answer is its rank
        self._parts: list[tuple[frozenset[str], ...]] = []
        self._values: list[frozenset[str]] = []
        self._near: set[tuple[str, str]] = set()
        self._overlaps = lru_cache(_REMEMBERED)(self._compared)
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
        """0 if two answers are alike, `steps` if as different as can be, None if unknown."""
        # Unknown: "New York" and "New York City", or answers that share some values.
        if answer1 == answer2:
            return 0
        if self._ranked:
            return abs(answer1 - answer2)
        overlaps = self._overlaps(min(answer1, answer2), max(answer1, answer2))
        return None if overlaps else 1

    def _compared(self, one: int, two: int) -> bool:
        """Whether a value of one answer may mean the same as one of the other."""
        if self._values[one] & self._values[two]:
            return True
        if any((a, b) in self._near for a in self._values[one] for b in self._values[two]):
            return True
        return any(
            (a <= b or b <= a) and not (a ^ b) & _NEGATIONS
            for a in self._parts[one]
            for b in self._parts[two]
        )

    def _by_name(self, given: Sequence[Sequence[str]], settings: CriterionSettings) -> list[int]:
        self._ranked = False
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
        self.steps = len(order) - 1
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
        self.steps = max(len(edges), 1)
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


Places = NDArray[np.int32]

_WORD = re.compile(r"[^\W_]+")
_FREQUENT = 0.02  # share of the texts; a word in more of them says little of what a text is about
_NONE = HeldOutTexts()


def words_of(text: str) -> frozenset[str]:
    """The words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


@dataclass(frozen=True, eq=False)
class Index:
    """Texts by number of what they have."""

    places: Places  # places of the texts, ordered by number
    starts: NDArray[np.int64]  # where each number begins, and the end

    @classmethod
    def of(cls, numbers: Places, places: Places, *, size: int) -> Index:
        """Sorts places, in order within a number; ``size`` is how many numbers there are."""
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=size)
        return cls(places[order], np.concatenate(([0], np.cumsum(counts))))

    def counts(self) -> NDArray[np.int64]:
        """Texts of each number."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False, kw_only=True)
class Labelled:
    """What rows can be drawn from."""

    name: str
    texts: Sequence[str]
    steps: dict[str, int]  # `Criterion.steps` of each criterion that can be used
    excluded: int  # texts or pairs left out since they are held out
    repeated: int  # texts or pairs left out since they came before
    unused: Sequence[str]  # criteria that cannot be used


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledTexts(Labelled):
    """Texts that share criteria, no two alike but for case and punctuation."""

    # The criteria that can be used: two answers or more have two texts or more.
    criteria: Sequence[Criterion]
    # The number of the answer of each text, -1 where there is none, ``(criteria, n)``.
    answers: NDArray[np.int32]

    def by_answer(self, criterion: int) -> Index:
        """The places of texts by their answer."""
        places = np.flatnonzero(self.answers[criterion] >= 0).astype(np.int32)
        numbers = self.answers[criterion, places]
        return Index.of(numbers, places, size=int(numbers.max()) + 1)

    def by_word(self) -> tuple[dict[str, int], Index]:
        """The numbers of telling words and the places of texts by word."""
        known: dict[str, int] = {}
        words, places = array("i"), array("i")
        for place, text in enumerate(self.texts):
            found = words_of(text)
            words.extend(known.setdefault(word, len(known)) for word in sorted(found))
            places.extend([place] * len(found))
        numbers = np.frombuffer(words, np.int32)
        counts = np.bincount(numbers, minlength=len(known))
        most = max(20, round(_FREQUENT * len(self.texts)))
        telling = (counts > 1) & (counts <= most)
        kept = telling[numbers]
        renumbered = (np.cumsum(telling) - 1).astype(np.int32)
        index = Index.of(
            renumbered[numbers[kept]],
            np.frombuffer(places, np.int32)[kept],
            size=int(telling.sum()),
        )
        return {w: int(renumbered[n]) for w, n in known.items() if telling[n]}, index


@dataclass
class _Answers:
    """What texts say of one criterion, as it is read."""

    known: dict[tuple[str, ...], int] = field(default_factory=dict)
    places: array[int] = field(default_factory=lambda: array("i"))
    numbers: array[int] = field(default_factory=lambda: array("i"))

    def add(self, place: int, values: tuple[str, ...]) -> None:
        self.places.append(place)
        self.numbers.append(self.known.setdefault(values, len(self.known)))

    def compared(
        self, name: str, settings: CriteriaSettings, *, texts: int
    ) -> tuple[Criterion, NDArray[np.int32]] | None:
        """The criterion and the number of each text's answer; None if it cannot be used."""
        own = settings.of(name)
        if own.leave_out or len(self.known) < 2 or len(self.places) < 4:
            return None
        given = np.frombuffer(self.numbers, np.int32)
        sizes = np.bincount(given).tolist()
        made = Criterion(name, self.known, own, texts=sizes, bins=own.bins or settings.bins)
        answers = np.full(texts, -1, np.int32)
        answers[np.frombuffer(self.places, np.int32)] = np.array(made.numbers(), np.int32)[given]
        twice = np.bincount(answers[answers >= 0]) > 1
        return (made, answers) if twice.sum() > 1 else None


def collect_texts(
    items: Iterable[CriteriaText],
    settings: CriteriaSettings,
    *,
    name: str = "texts",
    held_out: HeldOutTexts = _NONE,
) -> LabelledTexts:
    """Collects labelled texts to draw rows from; `InputError` if no criterion can be used."""
    texts: list[str] = []
    seen: set[bytes] = set()
    read: dict[str, _Answers] = {}
    excluded = repeated = 0
    for item in items:
        key = text_digest(item.text)
        if item.text in held_out:
            excluded += 1
        elif key in seen:
            repeated += 1
        else:
            seen.add(key)
            for criterion, values in item.attributes.items():
                read.setdefault(criterion, _Answers()).add(len(texts), values)
            texts.append(item.text)
    compared = (one.compared(key, settings, texts=len(texts)) for key, one in sorted(read.items()))
    used = [one for one in compared if one is not None]
    if not used:
        raise InputError(
            f"{name}: rows need a criterion with two values that two texts each have. Of "
            f"{len(texts):,} texts ({excluded:,} left out, {repeated:,} repeated) with the "
            f"criteria {', '.join(sorted(read)) or 'none'}, none has that; give more texts."
        )
    steps = {criterion.name: criterion.steps for criterion, _ in used}
    return LabelledTexts(
        name=name,
        texts=texts,
        steps=steps,
        excluded=excluded,
        repeated=repeated,
        unused=[criterion for criterion in sorted(read) if criterion not in steps],
        criteria=[criterion for criterion, _ in used],
        answers=np.stack([answers for _, answers in used]),
    )
