"""Counts of the things that a caption mentions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from condsim_annotation.weak.functions import Absent, value_or_absent
from condsim_annotation.weak.language import (
    Mention,
    Node,
    Sentence,
    listed,
    names_by_word,
    plural,
    taxonomy,
)

_NUMBER_WORDS = {int(entry.name): entry.words for entry in listed("numbers", "exact")}
_EXACT = {word: number for number, words in _NUMBER_WORDS.items() for word in words}
_VAGUE = {word: int(name) for word, name in names_by_word("numbers", "vague").items()}
_COLLECTIVE = {word: int(name) for word, name in names_by_word("numbers", "collective").items()}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6}
_OWNERS = frozenset(("the", "a", "an", "his", "her"))
# The number that a plural without a number stands for.
_NUMBER_OF_PLURAL = 3


class Count(NamedTuple):
    """A number of things: an estimate, unless the sentence gives it."""

    number: float
    exact: bool

    @property
    def size(self) -> int:
        """Class of an estimate: 0 none, 1 one, 2 some, 3 many."""
        return sum(self.number >= least for least in (1, 1.5, 10))


def read_count(sentence: Sentence, *, tree: str, of: str) -> Count | Absent | None:
    """Count the mentions of a node; absent if the sentence mentions nothing of the tree."""
    mentions = named_mentions(sentence, tree, of)
    count = _count_mentions(sentence, mentions) if mentions else None
    return value_or_absent(count, sentence, tree)


def named_mentions(sentence: Sentence, tree: str, of: str) -> list[Mention]:
    """List the mentions of a node that name it and do not only hint at it."""
    return [mention for mention in sentence.mentions(tree, of=of) if not mention.hint]


def _count_mentions(sentence: Sentence, mentions: Sequence[Mention]) -> Count:
    total, exact = 0.0, True
    singles: set[Node] = set()
    # Whether a plural came before: "two dogs, one of them black" counts them once.
    has_many = False
    for mention in mentions:
        distances = [following.start - mention.stop for following in mentions]
        # "A calico cat" is one; "a group of people" is counted at the people.
        is_group = sentence.word(mention.stop) == "of" and any(0 < d <= 4 for d in distances)
        if is_group or 0 in distances:
            continue
        count = _count_one(sentence, mention)
        before = sentence.before(mention)
        if count.number == 1:
            is_member = {"other", "one"} & {*before, sentence.word(mention.start - 1)}
            is_definite = before[-1:] in (("the",), ("his",), ("her",), ("that",))
            if (mention.node in singles and is_definite) or (has_many and is_member):
                continue
            singles.add(mention.node)
        elif mention.plural and has_many and "the" in before:
            continue
        has_many |= count.number > 1
        total += count.number
        exact &= count.exact
    if total == 1 and exact and _mentions_another(sentence):
        total = 2.0
    return Count(total, exact)


def compare_counts(count1: Count, count2: Count) -> float:
    """Compare two numbers."""
    low, high = sorted((count1.number, count2.number))
    if count1.exact and count2.exact:
        if low == high:
            return 5.0
        if low < 2:
            return 2.0 if (low, high) == (1, 2) else 1.0
        ratio = low / high
        return 4.0 if ratio > 0.9 else 3.0 if ratio > 0.6 else 2.0 if ratio >= 0.5 else 1.0
    if count1.exact or count2.exact:
        exact, estimate = (count1, count2) if count1.exact else (count2, count1)
        return 2.0 if estimate.size == 2 else 1.0 if exact.number < 10 else 3.0
    if count1.size != count2.size:
        return 2.0
    return 4.0 if low == high else 3.0


def say_count(value: Count) -> str:
    """Write a number as a short answer."""
    if value.exact:
        number = int(value.number)
        return _NUMBER_WORDS.get(number, (str(number),))[0] if number else "none"
    return "many" if value.size == 3 else "several"


def _count_one(sentence: Sentence, mention: Mention) -> Count:
    """Count one mention: by the words before it, or "a group of" it."""
    before = sentence.before(mention)
    start = mention.start - len(before)
    noun = sentence.words[mention.stop - 1]
    number = _number_before(before)
    if sentence.word(start - 1) == "of" and not _OWNERS & {*before[:1]}:
        quantity = sentence.word(start - 2)
        if quantity in _EXACT and quantity not in ("a", "an", "one"):
            return Count(_EXACT[quantity], exact=True)
        if number is None and quantity in _VAGUE:
            large = "large" in sentence.words[max(0, start - 4) : start - 2]
            return Count(max(_VAGUE[quantity], 12.0 * large), exact=False)
    if noun in _COLLECTIVE and (number is None or number == 1):
        return Count(_COLLECTIVE[noun], exact=_COLLECTIVE[noun] <= 3)
    if number is not None and (mention.plural or number <= 1 or plural(noun) == noun):
        return Count(number, exact=True)
    if mention.plural:
        vague = max((_VAGUE[word] for word in before if word in _VAGUE), default=0)
        return Count(vague or _NUMBER_OF_PLURAL, exact=False)
    return Count(1, exact=True)


def _mentions_another(sentence: Sentence) -> bool:
    """Return whether "another" or "the other" stands alone for a second one."""
    actions = taxonomy("actions")
    return any(
        word in ("another", "other") and (following == "is" or bool(actions.find((following,))))
        for word, following in pairwise(sentence.words)
    )


def _number_before(before: Sequence[str]) -> float | None:
    """Return the number among the words before a noun."""
    scale = 1.0
    for word in reversed(before):
        digits = word.replace(",", "")
        if digits.isdigit() and int(digits) > 0:
            return float(digits) * scale
        if word in _EXACT and word not in ("a", "an", "couple"):
            return float(_EXACT[word]) * scale
        scale *= _SCALES.get(word, 1.0)
    if {"a", "an"} & {*before} and not {"few", "couple", "lot", "bunch"} & {*before}:
        return scale
    return 2.0 if "couple" in before else None
