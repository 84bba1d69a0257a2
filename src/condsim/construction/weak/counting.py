"""How many: read from a sentence's nouns and the words before them, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from condsim.construction.weak.functions import ABSENT, Absent
from condsim.construction.weak.language import Found, Node, Sentence, taxonomy
from condsim.construction.weak.words import listed, names_by_word, plural

_NUMBERS = {int(entry.name): entry.words for entry in listed("numbers", "exact")}
_EXACT = {word: number for number, words in _NUMBERS.items() for word in words}
_VAGUE = {word: int(name) for word, name in names_by_word("numbers", "vague").items()}
_COLLECTIVE = {word: int(name) for word, name in names_by_word("numbers", "collective").items()}
_PLURAL = 3  # what a plural without a number is taken for


@dataclass(frozen=True)
class Count:
    """A number of things: an estimate, unless the sentence tells it."""

    number: float
    exact: bool

    @property
    def size(self) -> int:
        """Class of an estimate: 0 none, 1 one, 2 some, 3 many."""
        return sum(self.number >= least for least in (1, 1.5, 10))


def read_count(sentence: Sentence, *, tree: str, of: Node) -> Count | Absent | None:
    """Counts what a sentence mentions of a node; absent if it mentions nothing of the tree."""
    found = [hit for hit in sentence.mentions(tree, of=of) if not hit.hint]
    if found:
        return count(sentence, found)
    return None if sentence.mentions(tree) else ABSENT


def count(sentence: Sentence, found: Sequence[Found]) -> Count:
    """Counts things that a sentence mentions, at least one."""
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
    return Count(total, exact)


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
        return _NUMBERS.get(number, (str(number),))[0] if number else "none"
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
