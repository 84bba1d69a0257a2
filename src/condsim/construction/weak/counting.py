"""How many: read from a sentence's nouns and the words before them, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from condsim.construction.weak.forms import plural
from condsim.construction.weak.language import Sentence
from condsim.construction.weak.trees import Found, Node, taxonomy

_NAMES = "no one two three four five six seven eight nine ten eleven twelve".split()
_EXACT = {name: number for number, name in enumerate(_NAMES)} | {
    "a": 1,
    "an": 1,
    "another": 1,
    "this": 1,
    "single": 1,
    "lone": 1,
    "solo": 1,
    "both": 2,
    "couple": 2,
    "pair": 2,
    "trio": 3,
    "duo": 2,
}
_VAGUE = {
    "few": 4,
    "some": 4,
    "several": 4,
    "group": 5,
    "bunch": 5,
    "various": 5,
    "multiple": 4,
    "assorted": 5,
    "row": 5,
    "set": 4,
    "line": 6,
    "pack": 5,
    "team": 7,
    "stack": 5,
    "family": 4,
    "gang": 6,
    "herd": 10,
    "flock": 10,
    "many": 12,
    "lots": 12,
    "lot": 12,
    "dozens": 20,
    "numerous": 12,
    "variety": 8,
    "crowd": 20,
    "large": 0,
}
_PLURAL = 3.0  # what a plural without a number is taken for
_COLLECTIVE = {
    "group": 5.0,
    "crowd": 20.0,
    "family": 4.0,
    "couple": 2.0,
    "team": 7.0,
    "audience": 20.0,
    "gathering": 12.0,
    "band": 5.0,
    "crew": 5.0,
    "duo": 2.0,
    "trio": 3.0,
}


@dataclass(frozen=True)
class Count:
    """A number of things.

    Attributes:
        number: How many, at least 0; an estimate unless exact.
        exact: Whether the sentence tells the number.
    """

    number: float
    exact: bool

    @property
    def size(self) -> int:
        """Class of an estimate: 0 none, 1 one, 2 some, 3 many."""
        return sum(self.number >= least for least in (1, 1.5, 10))


def count(sentence: Sentence, found: Sequence[Found]) -> Count | None:
    """Counts things that a sentence mentions."""
    total, exact = 0.0, True
    single: set[Node] = set()
    many = False  # a plural came before: "two dogs, one of them black" counts them once
    for hit in found:
        if sentence.word(hit.stop) == "of" and any(0 < o.start - hit.stop <= 4 for o in found):
            continue  # "a group of people" is counted at the people
        if any(o.start == hit.stop for o in found):
            continue  # "a calico cat" is one
        one = _count_one(sentence, hit)
        before = sentence.before(hit)
        if one.number == 1:
            other = {"other", "one"} & {*before, sentence.word(hit.start - 1)}
            again = hit.node in single and before[-1:] in (("the",), ("his",), ("her",), ("that",))
            if again or (many and other):
                continue
            single.add(hit.node)
        elif hit.plural and many and "the" in before:
            continue
        many |= one.number > 1
        total += one.number
        exact &= one.exact
    if total == 1 and exact and _another(sentence):
        total = 2.0
    return Count(total, exact) if found else None


def compare_counts(one: Count, two: Count) -> float:
    """Compares two numbers."""
    low, high = sorted((one.number, two.number))
    if one.exact and two.exact:
        if low == high:
            return 5.0
        if low < 2:
            return 2.0 if high == 2 else 1.0
        return 3.0 if low / high > 0.6 else 2.0 if low / high >= 0.5 else 1.0
    if one.exact or two.exact:
        told, other = (one, two) if one.exact else (two, one)
        return 2.0 if other.size == 2 else 1.0 if told.number < 10 else 3.0
    if one.size != two.size:
        return 2.0
    return 4.0 if low == high else 3.0


def say_count(value: Count) -> str:
    """Says a number as a short answer.

    Example:
        >>> say_count(Count(2, exact=True)), say_count(Count(20, exact=False))
        ('two', 'many')
    """
    if value.exact:
        number = int(value.number)
        return "none" if number == 0 else _NAMES[number] if number <= 12 else str(number)
    return "many" if value.size == 3 else "several"


def _count_one(sentence: Sentence, hit: Found) -> Count:
    """Counts one mention: by the words before it, or "a group of" it."""
    before = sentence.before(hit)
    start = hit.start - len(before)
    noun = sentence.words[hit.stop - 1]
    if sentence.word(start - 1) == "of" and not {"the", "a", "an", "his", "her"} & {*before[:1]}:
        quantity = sentence.word(start - 2)
        if quantity in _EXACT and quantity not in ("a", "an", "one"):
            return Count(_EXACT[quantity], exact=True)
        if _number(before) is None and quantity in _VAGUE:
            large = "large" in sentence.words[max(0, start - 4) : start - 2]
            return Count(max(_VAGUE[quantity], 12.0 * large), exact=False)
    number = _number(before)
    if noun in _COLLECTIVE and (number is None or number == 1):
        return Count(_COLLECTIVE[noun], exact=_COLLECTIVE[noun] <= 3)
    if number is not None and (hit.plural or number <= 1 or plural(noun) == noun):
        return Count(number, exact=True)
    if hit.plural:
        vague = max((_VAGUE[word] for word in before if word in _VAGUE), default=0)
        return Count(vague or _PLURAL, exact=False)
    return Count(1, exact=True)


def _another(sentence: Sentence) -> bool:
    """Whether a second one is called "another" or "the other" alone: "as another looks on"."""
    for place, word in enumerate(sentence.words):
        following = sentence.words[place + 1 : place + 2]
        if word in ("another", "other") and following:
            if following[0] == "is" or taxonomy("actions").find(following):
                return True
    return False


def _number(before: Sequence[str]) -> float | None:
    """The number among the words before a noun."""
    for word in reversed(before):
        if word.isdigit() and 0 < int(word) < 100:
            return float(word)
        if word in _EXACT and word not in ("a", "an", "couple"):
            return float(_EXACT[word])
    if {"a", "an"} & {*before} and not {"few", "couple", "lot", "bunch"} & {*before}:
        return 1.0
    return 2.0 if "couple" in before else None
