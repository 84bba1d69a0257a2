"""What a condition is about, whatever its wording.

"The number of people.", "How many persons there are" and "people count" have one key: the set of
their words that carry meaning, in the singular, with words of one meaning made one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_HEADS: dict[str, tuple[str, ...]] = {
    "number": (
        "amount of {x}",
        "quantity of {x}",
        "how many {x} there are",
        "how many {x} are there?",
        "{x} count",
        "count of {x}",
        "total number of {x}",
    ),
    "color": (
        "colour of {x}",
        "what color the {x} is",
        "which color the {x} has",
        "{x} color",
        "{x}'s color",
        "the main color of the {x}",
    ),
    "type": (
        "kind of {x}",
        "name of {x}",
        "what kind of {x} it is",
        "{x} type",
        "which {x} is shown",
        "sort of {x}",
        "{x}",
    ),
    "gender": ("sex of {x}", "{x}'s gender", "whether the {x} is male or female", "gender"),
    "age": ("how old the {x} is", "{x}'s age", "age group of {x}", "the age of the {x}", "age"),
    "action": (
        "what the {x} is doing",
        "motion of {x}",
        "{x}'s action",
        "movement of {x}",
        "actions of {x}",
        "what is the {x} doing?",
    ),
    "activity": ("activity of the {x}", "{x}'s activity", "what the {x} does", "hobby of {x}"),
    "location": (
        "place of {x}",
        "where the {x} is",
        "{x}'s location",
        "setting of {x}",
        "where is the {x}?",
    ),
    "presence": (
        "presence of a {x}",
        "whether there is a {x}",
        "is there a {x}?",
        "{x} is present",
    ),
    "position": ("posture of {x}", "{x}'s position", "body position of {x}", "stance of {x}"),
    "speed": ("how fast the {x} moves", "{x}'s speed", "the speed of the {x}"),
    "size": ("how big the {x} is", "{x}'s size", "{x} size"),
    "material": ("what the {x} is made of", "{x} material"),
}


def wordings_of(name: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Gives ways to write a condition.

    Example:
        >>> wordings_of("number of dogs")[:3]
        ('number of dogs', 'The number of dogs.', 'the number of dogs')
    """
    made = dict.fromkeys(style for text in _plain(name, extra) for style in _styles(text))
    return tuple(made)


def _plain(name: str, extra: tuple[str, ...]) -> Iterator[str]:
    yield name
    head, _, rest = name.partition(" of ")
    if rest:
        yield from (template.format(x=rest) for template in _HEADS.get(head, ()))
    yield from extra


def _styles(text: str) -> Iterator[str]:
    yield text
    start = text.split(" ")[0]
    if text.endswith("?"):
        yield text[0].upper() + text[1:]
    elif start in ("how", "what", "where", "which", "whether", "the"):
        yield text[0].upper() + text[1:] + "."
    else:
        yield f"The {text}."
        yield f"the {text}"
        yield text[0].upper() + text[1:] + "."


_EMPTY = frozenset(
    "the a an of is are being in on by to that this these those it for with there do does be was "
    "at present involved shown used involving taking performed played depicted seen visible "
    "mentioned main scene picture image what which how their his her its he she they whether under "
    "who whom each total overall current relative described s has have and".split()
)
_SAME = {
    "people": "person",
    "human": "person",
    "individual": "person",
    "subject": "person",
    "somebody": "person",
    "someone": "person",
    "men": "man",
    "male": "man",
    "women": "woman",
    "female": "woman",
    "kid": "child",
    "children": "child",
    "colour": "color",
    "coloring": "color",
    "coloration": "color",
    "sex": "gender",
    "amount": "number",
    "quantity": "number",
    "count": "number",
    "many": "number",
    "kind": "type",
    "name": "type",
    "sort": "type",
    "species": "type",
    "breed": "type",
    "variety": "type",
    "identity": "type",
    "category": "type",
    "old": "age",
    "location": "place",
    "where": "place",
    "setting": "place",
    "surroundings": "place",
    "surrounding": "place",
    "environment": "place",
    "venue": "place",
    "scenery": "place",
    "backdrop": "place",
    "background": "place",
    "motion": "action",
    "movement": "action",
    "behavior": "action",
    "doing": "action",
    "activities": "activity",
    "hobby": "activity",
    "hobbies": "activity",
    "pastime": "activity",
    "clothe": "clothing",
    "clothes": "clothing",
    "outfit": "clothing",
    "attire": "clothing",
    "apparel": "clothing",
    "wearings": "clothing",
    "worn": "clothing",
    "uniform": "clothing",
    "item": "object",
    "thing": "object",
    "automobile": "vehicle",
    "transportation": "transport",
    "posture": "position",
    "pose": "position",
    "stance": "position",
    "sports": "sport",
    "occupation": "job",
    "profession": "job",
    "absence": "presence",
    "sentiment": "mood",
    "emotion": "mood",
    "expression": "mood",
    "feeling": "mood",
}
_SINGULAR = {"dishes": "dish", "buses": "bus", "sandwiches": "sandwich", "benches": "bench"}
_KEPT = frozenset("bus species tennis glass grass dress surroundings gas series dishes".split())


@cache
def condition_key(condition: str) -> frozenset[str]:
    """Gives the words of a condition that carry its meaning.

    Example:
        >>> condition_key("The number of people.") == condition_key("How many persons there are")
        True
    """
    return frozenset(
        word for word in map(_conditions_plain, re.findall(r"[a-z0-9]+", condition.lower())) if word
    )


def _conditions_plain(word: str) -> str:
    if word in _EMPTY:
        return ""
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
