"""Texts and pairs with labels, collected from a table to draw rows from."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.tables import CriteriaPair, CriteriaText
from condsim.errors import InputError
from condsim.rows.criteria.settings import CriteriaSettings
from condsim.rows.criteria.values import Criterion, is_number

Item = TypeVar("Item")

_WORD = re.compile(r"[^\W_]+")
# Words in a larger share of the texts say little about a text.
_MAX_SHARE_OF_WORD = 0.02
# Labels of pairs between 0 and 1 are rounded to this many steps.
_STEPS_OF_LABELS = 4


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def word_overlap(words1: frozenset[str], words2: frozenset[str]) -> float:
    """Return the shared words by all words of both, 0 to 1."""
    shared = len(words1 & words2)
    return shared / max(1, len(words1) + len(words2) - shared)


@dataclass(frozen=True, eq=False, kw_only=True)
class Labelled:
    """Texts that rows can be drawn from; no two differ in case and punctuation alone."""

    name: str
    texts: Sequence[str]
    # Grades of each criterion that can be used; see `Criterion.steps`.
    steps: dict[str, int]
    # Criteria that cannot be used.
    unused: Sequence[str]
    # Texts or pairs that are ``excluded`` since they are held out, or ``repeated``.
    left_out: Counter[str]


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledTexts(Labelled):
    """Texts that share criteria, each with two answers or more that have two texts or more."""

    criteria: Sequence[Criterion]
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
class LabelledPairs(Labelled):
    """Pairs of texts, one after the other, with labels from 0 to 1 by criterion."""

    labels: list[dict[str, float]]


def collect_texts(
    items: Iterable[CriteriaText],
    settings: CriteriaSettings,
    *,
    name: str,
    held_out: HeldOutTexts,
    refuse_numbers: bool = False,
) -> LabelledTexts:
    """Collect texts; raise `InputError` if no criterion can be used.

    Numbers that no setting names, such as an id or a price, may be refused.
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
    criteria: list[Criterion] = []
    answers: list[NDArray[np.int32]] = []
    for criterion, members in sorted(texts_of.items()):
        if refuse_numbers and criterion not in settings.criteria:
            _check_no_numbers(name, criterion, chain.from_iterable(members))
        own = settings.of(criterion)
        if own.leave_out or len(members) < 2:
            continue
        counts = list(map(len, members.values()))
        compared = Criterion(criterion, members, own, texts=counts, bins=own.bins or settings.bins)
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
    return LabelledTexts(
        name=name,
        texts=texts,
        steps=steps,
        unused=sorted(texts_of.keys() - steps.keys()),
        left_out=left_out,
        criteria=criteria,
        answers=np.stack(answers),
    )


def _check_no_numbers(name: str, criterion: str, values: Iterable[str]) -> None:
    if all(map(is_number, values)):
        raise InputError(
            f"{name}: the column {criterion!r} holds numbers, which are not just alike or "
            "different; grade them with --bins, or name the columns to use with --criteria."
        )


def collect_pairs(
    items: Iterable[CriteriaPair], settings: CriteriaSettings, *, name: str, held_out: HeldOutTexts
) -> LabelledPairs:
    """Collect labelled pairs; raise `InputError` if no criterion can be used."""
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
    return LabelledPairs(
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
    return InputError(
        f"{name}: rows need a criterion with {rule}; the {total} "
        f"({left_out['excluded']:,} left out, {left_out['repeated']:,} repeated) have none among "
        f"the criteria {', '.join(sorted(criteria)) or 'none'}."
    )
