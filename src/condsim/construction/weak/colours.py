"""Colours: which ones a sentence gives a thing, and how near two sets of colours are."""

from __future__ import annotations

from collections.abc import Sequence

from condsim.construction.weak.sentence import Sentence
from condsim.construction.weak.taxonomy import Found

__all__ = ["COLOURS", "all_colours", "colours_of", "compare_colours", "worn_colours"]

_NAMES = {
    "red": "red scarlet crimson maroon burgundy",
    "orange": "orange",
    "yellow": "yellow gold golden blond blonde mustard",
    "green": "green olive lime teal",
    "blue": "blue navy turquoise aqua cyan",
    "purple": "purple violet lavender mauve",
    "pink": "pink magenta fuchsia",
    "brown": "brown chocolate rust",
    "tan": "tan beige khaki cream sandy",
    "black": "black dark",
    "white": "white",
    "grey": "grey gray silver",
    "several colours": "colorful colourful multicolored rainbow multi colored",
    "spotted": "spotted striped patterned plaid floral checkered",
}
COLOURS = {word: name for name, words in _NAMES.items() for word in words.split()}
"""Colour of each word for one."""

_NEAR = [
    frozenset(pair)
    for pair in (
        ("red", "orange"),
        ("red", "pink"),
        ("orange", "yellow"),
        ("blue", "purple"),
        ("purple", "pink"),
        ("brown", "tan"),
        ("black", "grey"),
        ("grey", "white"),
        ("tan", "yellow"),
        ("tan", "white"),
        ("brown", "orange"),
    )
]
_WEARS = frozenset("in wearing wears dressed clad".split())
_LINKS = frozenset("is are was were".split())
_JOINS = frozenset(("and", ",", "&", "or"))


def colours_of(sentence: Sentence, found: Sequence[Found]) -> frozenset[str] | None:
    """Reads the colours of things that a sentence mentions.

    Args:
        sentence: The sentence.
        found: The mentions of them.

    Returns:
        Colours before the noun ("a black and white dog") or after it ("the dog is black"); None if
        there are none.
    """
    colours: set[str] = set()
    for hit in found:
        at = hit.start - 1
        while at >= 0 and hit.start - at <= 8:
            word = sentence.words[at]
            joined = word in _JOINS and sentence.word(at - 1) in COLOURS
            if word in COLOURS:
                colours.add(COLOURS[word])
            elif not joined and word not in sentence.before(hit):
                break
            at -= 1
        if sentence.word(hit.stop) in _LINKS and sentence.word(hit.stop + 1) in COLOURS:
            colours.add(COLOURS[sentence.word(hit.stop + 1)])
    return frozenset(colours) or None


def worn_colours(sentence: Sentence) -> frozenset[str]:
    """Reads what is worn from "a man in red" and "dressed in black and white".

    Args:
        sentence: The sentence.

    Returns:
        The colours; empty if there are none.
    """
    colours: set[str] = set()
    for at, word in enumerate(sentence.words):
        following = at + 1
        while word in _WEARS and (
            sentence.word(following) in COLOURS
            or (following > at + 1 and sentence.word(following) in _JOINS)
            or sentence.word(following) in ("all", "a")
        ):
            if sentence.word(following) in COLOURS:
                colours.add(COLOURS[sentence.word(following)])
            following += 1
    return frozenset(colours)


def all_colours(sentence: Sentence) -> frozenset[str]:
    """Reads every colour.

    Args:
        sentence: The sentence.

    Returns:
        The colours; empty if there are none.
    """
    return frozenset(COLOURS[word] for word in sentence.words if word in COLOURS)


def compare_colours(one: frozenset[str], two: frozenset[str]) -> float:
    """Compares two sets of colours.

    Args:
        one: Colours, at least one.
        two: Others.

    Returns:
        From 1 to 5: 5 for the same, 4 or 3 for some in common, 2 for near ones (red and orange), 1
        for others.
    """
    if one == two:
        return 5.0
    shared = len(one & two) / len(one | two)
    if shared:
        return 4.0 if shared >= 0.5 else 3.0
    near = any(frozenset((a, b)) in _NEAR for a in one for b in two)
    return 2.0 if near else 1.0
