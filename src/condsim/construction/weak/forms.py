"""Forms of English words: the plural of a noun, the inflections of a verb."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORD = re.compile(r"[a-z0-9]+|[,.;:!?&]")


_PLURALS = {
    "person": "people",
    "man": "men",
    "woman": "women",
    "child": "children",
    "foot": "feet",
    "tooth": "teeth",
    "mouse": "mice",
    "goose": "geese",
    "ox": "oxen",
    "calf": "calves",
    "knife": "knives",
    "shelf": "shelves",
    "loaf": "loaves",
    "leaf": "leaves",
    "wolf": "wolves",
    "scarf": "scarves",
    "sheep": "sheep",
    "cattle": "cattle",
    "police": "police",
    "deer": "deer",
    "fish": "fish",
    "bison": "bison",
    "moose": "moose",
    "aircraft": "aircraft",
    "broccoli": "broccoli",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "skis": "skis",
}


_PASTS = {
    "run": "ran",
    "sit": "sat",
    "stand": "stood",
    "lie": "lay lain lying",
    "lay": "laid",
    "ride": "rode ridden",
    "drive": "drove driven",
    "throw": "threw thrown",
    "catch": "caught",
    "hold": "held",
    "swim": "swam swum",
    "eat": "ate eaten",
    "drink": "drank drunk",
    "fly": "flew flown",
    "hit": "hit",
    "sleep": "slept",
    "swing": "swung",
    "take": "took taken",
    "make": "made",
    "sing": "sang sung",
    "read": "read",
    "write": "wrote written",
    "draw": "drew drawn",
    "fight": "fought",
    "fall": "fell fallen",
    "climb": "climbed",
    "leap": "leapt",
    "dig": "dug",
    "hang": "hung",
    "kneel": "knelt",
    "bite": "bit bitten",
    "blow": "blew blown",
    "speak": "spoke spoken",
    "sell": "sold",
    "buy": "bought",
    "cut": "cut",
    "build": "built",
    "lead": "led",
    "bend": "bent",
    "slide": "slid",
    "wear": "wore worn",
    "look": "looked",
    "lean": "leaned",
    "sweep": "swept",
    "feed": "fed",
    "give": "gave given",
    "shoot": "shot",
    "dive": "dove",
    "cross": "crossed",
    "do": "does did done",
    "get": "got",
    "ski": "skis skiing skied",
}


_DOUBLED = set(
    "run sit swim jog hug cut dig hit chop skip grab bat put get tag lap hop grin trim nap tap "
    "shop stop rub pet drag pat drum set spin step slip flip wrap scrub mop".split()
)


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
    made = {first, third, (first[:-1] if silent else double) + "ing"}
    if first in _PASTS:
        made.update(_PASTS[first].split())
    elif re.search(r"[^aeiou]y$", first):
        made.add(first[:-1] + "ied")
    else:
        made.add(first + "d" if first.endswith("e") else double + "ed")
    yield from (" ".join([form, *rest]) for form in made)
