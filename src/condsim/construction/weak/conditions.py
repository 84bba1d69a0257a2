"""Conditions: ways to write one, and what one is about, whatever its wording.

"The number of people.", "How many persons there are" and "people count" have one key: the set of
their words that carry meaning, in the singular, with words of one meaning made one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from condsim.construction.weak.words import all_words, listed, names_by_word

_HEADS = {entry.name: entry.words[1:] for entry in listed("conditions", "heads")}
_SAME = names_by_word("conditions", "same")
_SINGULAR = names_by_word("conditions", "singular")
_KEPT = all_words("conditions", "kept")
_EMPTY = all_words("conditions", "empty")


def wordings_of(name: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Gives ways to write a condition.

    Example:
        >>> wordings_of("number of dogs")[:3]
        ('number of dogs', 'The number of dogs.', 'the number of dogs')
    """
    head, _, rest = name.partition(" of ")
    made = [template.format(x=rest) for template in _HEADS.get(head, ()) if rest]
    return tuple(dict.fromkeys(way for text in (name, *made, *extra) for way in _ways(text)))


def _ways(text: str) -> Iterator[str]:
    """A wording as it is, and as a sentence."""
    yield text
    capital = text[0].upper() + text[1:]
    if text.endswith("?"):
        yield capital
    elif text.split(" ")[0] in ("how", "what", "where", "which", "whether", "the"):
        yield f"{capital}."
    else:
        yield f"The {text}."
        yield f"the {text}"
        yield f"{capital}."


@cache
def built_in_conditions() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Gives the further wordings of the built-in functions, and what else they understand."""
    lists = {entry.name: entry.words for entry in listed("functions", "lists")}

    def expanded(text: str) -> Iterator[str]:
        head, brace, name = text.partition("{")
        yield from (head + word for word in (lists[name.rstrip("}")] if brace else ("",)))

    return {
        entry.name: (entry.words[1:], tuple(one for text in entry.hints for one in expanded(text)))
        for entry in listed("functions", "conditions")
    }


@cache
def condition_key(condition: str) -> frozenset[str]:
    """Gives the words of a condition that carry its meaning.

    Example:
        >>> condition_key("The number of people.") == condition_key("How many persons there are")
        True
    """
    words = re.findall(r"[a-z0-9]+", condition.lower())
    return frozenset(_meaning(word) for word in words if word not in _EMPTY)


def _meaning(word: str) -> str:
    word = _SAME.get(word, word)
    if word in _SINGULAR:
        word = _SINGULAR[word]
    elif word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes", "oes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3 and word not in _KEPT:
        word = word[:-1]
    return _SAME.get(word, word)
