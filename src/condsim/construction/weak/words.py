"""Files of words, and the forms of English words.

All words and wordings lie in text files: trees in ``words/``, lists in ``lists/``. Each line is an
entry, indented by two spaces below the one it belongs to:

```
# a comment
(animal), creature       a name in brackets is no word itself
  dog, puppy | leash     words that mean the same; after the bar, words that only hint at it
! hot dog                phrases that mean nothing here, though their parts do
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from condsim.errors import InputError

FOLDER = resources.files("condsim.construction.weak")
_WORD = re.compile(r"[a-z0-9]+|[,.;:!?&]")


@dataclass(frozen=True)
class Entry:
    """A line of a file of words."""

    line: int  # from 1
    depth: int
    name: str  # its first word; "!" for phrases that mean nothing
    words: tuple[str, ...]  # before the bar; with the name, unless that is in brackets
    hints: tuple[str, ...]  # after the bar


def entries(text: str, *, source: str) -> Iterator[Entry]:
    """Reads the lines of a file of words."""
    deepest = 0
    for number, line in enumerate(text.splitlines(), 1):
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        if body.startswith("!"):
            yield Entry(number, 0, "!", _parts(body[1:]), ())
            continue
        depth, odd = divmod(len(line) - len(line.lstrip(" ")), 2)
        if odd or depth > deepest:
            raise InputError(
                f"{source}, line {number}: a node must be indented by two spaces more than "
                f"its parent at most. Got {line!r}."
            )
        deepest = depth + 1
        named, _, hints = body.partition("|")
        first, *rest = words = _parts(named)
        own = words if first == first.strip("()") else tuple(rest)
        yield Entry(number, depth, first.strip("()"), own, _parts(hints))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@cache
def listed(name: str, heading: str) -> tuple[Entry, ...]:
    """Gives the entries below a heading of a file in ``lists/``."""
    found: list[Entry] = []
    inside = False
    text = (FOLDER / "lists" / f"{name}.txt").read_text(encoding="utf-8")
    for entry in entries(text, source=name):
        if entry.depth == 0:
            inside = entry.name == heading
        elif inside:
            found.append(entry)
    return tuple(found)


def all_words(name: str, heading: str) -> frozenset[str]:
    """Gives all words below a heading of a list."""
    return frozenset(word for entry in listed(name, heading) for word in entry.words)


def names_by_word(name: str, heading: str) -> dict[str, str]:
    """Gives the name of the entry that each word below a heading of a list belongs to."""
    return {word: entry.name for entry in listed(name, heading) for word in entry.words}


_PLURALS = {entry.name: entry.words[1] for entry in listed("grammar", "plurals")}
_VERBS = {entry.name: entry.words[1:] for entry in listed("grammar", "verbs")}
_DOUBLED = all_words("grammar", "doubled")


def words_of(text: str) -> tuple[str, ...]:
    """Cuts a text into words in small letters and marks that part clauses.

    Example:
        >>> words_of("A T-shirt, red.")
        ('a', 't', 'shirt', ',', 'red', '.')
    """
    return tuple(_WORD.findall(text.lower()))


def plural(noun: str) -> str:
    """Gives the plural of a noun or of a phrase that ends in one.

    Example:
        >>> plural("fire truck"), plural("woman"), plural("puppy"), plural("bus")
        ('fire trucks', 'women', 'puppies', 'buses')
    """
    *first, last = noun.split(" ")
    if last in _PLURALS:
        last = _PLURALS[last]
    elif last.endswith(("man", "woman")) and last not in ("human", "german"):
        last = last[:-2] + "en"
    elif re.search(r"[^aeiou]y$", last):
        last = last[:-1] + "ies"
    elif last.endswith(("s", "x", "z", "ch", "sh")):
        last += "es"
    else:
        last += "s"
    return " ".join([*first, last])


def verb_forms(verb: str) -> Iterator[str]:
    """Gives the inflections of a verb, or of a phrase that starts with one.

    Example:
        >>> sorted(verb_forms("jump over"))
        ['jump over', 'jumped over', 'jumping over', 'jumps over']
    """
    first, *rest = verb.split(" ")
    double = first + first[-1] if first in _DOUBLED else first
    silent = first.endswith("e") and not first.endswith(("ee", "oe"))
    third = plural(first) if first not in _PLURALS else first + "s"
    forms = {first, third, (first[:-1] if silent else double) + "ing"}
    if first in _VERBS:
        forms.update(_VERBS[first])
    elif re.search(r"[^aeiou]y$", first):
        forms.add(first[:-1] + "ied")
    else:
        forms.add(first + "d" if first.endswith("e") else double + "ed")
    yield from (" ".join([form, *rest]) for form in forms)
