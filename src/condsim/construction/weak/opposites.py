"""Words and their opposites: which side of an attribute a text is on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from condsim.construction.weak.quantities import Token
from condsim.construction.weak.words import listed, words_of

_NEGATIONS = frozenset("not no never n't cannot without neither nor".split())
_SCOPE = 3
_LONGEST = 2  # words of a phrase


@dataclass(frozen=True)
class Opposites:
    """An attribute with two sides."""

    name: str  # the attribute, in the words of a condition
    sides: Mapping[tuple[str, ...], int]  # 1 or -1 by word or phrase
    swaps: Mapping[str, str]  # the opposite of each word or phrase


@cache
def opposites() -> dict[str, Opposites]:
    """Gives the attributes by their names."""
    found: dict[str, Opposites] = {}
    sides: dict[tuple[str, ...], int] = {}
    swaps: dict[str, str] = {}
    for entry in listed("opposites", "opposites"):
        if entry.depth == 1:
            sides, swaps = {}, {}
            found[entry.name] = Opposites(entry.name, sides, swaps)
            continue
        for one, two in zip(entry.words, entry.hints, strict=False):
            swaps.setdefault(one, two)
            swaps.setdefault(two, one)
        for side, words in ((1, entry.words), (-1, entry.hints)):
            for word in words:
                sides.setdefault(words_of(word), side)
    return found


@cache
def _neighbours(heading: str) -> dict[str, frozenset[str]]:
    return {one.name: frozenset(one.words[1:]) for one in listed("opposites", heading)}


def stands_alone(words: list[str], place: int) -> bool:
    """Whether a word is the one that has an opposite there, and no part of another phrase."""
    word = words[place]
    before = words[place - 1] if place else ""
    following = words[place + 1] if place + 1 < len(words) else ""
    wanted = _neighbours("only after").get(word)
    barred = _neighbours("not before").get(word, frozenset())
    return following not in barred and (wanted is None or before in wanted)


def side_of(words: list[str], known: Mapping[tuple[str, ...], int]) -> int | None:
    """Says on which side of an attribute a text is; None if on neither or on both.

    A negation up to three words before a word turns it.
    """
    found: set[int] = set()
    at = 0
    while at < len(words):
        for length in range(_LONGEST, 0, -1):
            side = known.get(tuple(words[at : at + length]))
            if side is not None and (length > 1 or stands_alone(words, at)):
                before = words[max(0, at - _SCOPE) : at]
                turned = any(word in _NEGATIONS or word.endswith("n't") for word in before)
                found.add(-side if turned else side)
                at += length - 1
                break
        at += 1
    return found.pop() if len(found) == 1 else None


def swapped(tokens: list[Token], place: int, known: Opposites) -> str | None:
    """Gives the opposite of the word at a place."""
    words = [token.word for token in tokens]
    return known.swaps.get(words[place]) if stands_alone(words, place) else None
