"""Number, kind, colour and presence of things: one function for each noun of the trees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from condsim.construction.weak.compare import by_tree, say_nodes
from condsim.construction.weak.counting import Count, compare_counts, count, say_count
from condsim.construction.weak.forms import plural
from condsim.construction.weak.language import Sentence
from condsim.construction.weak.registry import ABSENT, REGISTRY, Absent, labelling_function
from condsim.construction.weak.trees import Found, Node, taxonomy

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
    """Reads the colours of things that a sentence mentions."""
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
    """Reads what is worn from "a man in red" and "dressed in black and white"."""
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
    """Reads every colour."""
    return frozenset(COLOURS[word] for word in sentence.words if word in COLOURS)


def compare_colours(one: frozenset[str], two: frozenset[str]) -> float:
    """Compares two sets of colours."""
    if one == two:
        return 5.0
    shared = len(one & two) / len(one | two)
    if shared:
        return 4.0 if shared >= 0.5 else 3.0
    near = any(frozenset((a, b)) in _NEAR for a in one for b in two)
    return 2.0 if near else 1.0


_TREES = {
    "animals": "animal",
    "vehicles": "vehicle",
    "food": "food",
    "furniture": "furniture",
    "instruments": "instrument",
    "clothing": "clothing",
    "objects": "object",
}
_FLOORS = {"food": 2.0, "objects": 2.0, "furniture": 2.0, "clothing": 2.0}
_VOID = frozenset(("objects", "food", "clothing", "furniture"))  # "number of objects" says little
_FEW = 0.05  # weight of a function for one word, where the frequency of conditions is not known


def _number(sentence: Sentence, *, tree: str, of: Node) -> Count | Absent | None:
    found = [hit for hit in sentence.mentions(tree, of=of) if not hit.hint]
    if found:
        return count(sentence, found)
    return None if sentence.mentions(tree) else ABSENT


def _kind(sentence: Sentence, *, tree: str, of: Node) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes(tree, of=of)
    if nodes:
        return nodes - {of} or None
    return None if sentence.mentions(tree) else ABSENT


def _colour(sentence: Sentence, *, tree: str, of: Node) -> frozenset[str] | Absent | None:
    found = [hit for hit in sentence.mentions(tree, of=of) if not hit.hint]
    if found:
        return colours_of(sentence, found)
    return None if sentence.mentions(tree) else ABSENT


def _worn_colour(sentence: Sentence) -> frozenset[str] | Absent | None:
    found = sentence.mentions("clothing")
    colours = (colours_of(sentence, found) or frozenset()) | worn_colours(sentence)
    if colours:
        return colours
    return None if found or sentence.mentions("people") else ABSENT


def _presence(sentence: Sentence, *, tree: str, of: Node) -> str:
    return "yes" if sentence.mentions(tree, of=of) else "no"


def _compare_presence(one: str, two: str) -> float | None:
    """Two sentences without it tell nothing: captions do not say what there is not."""
    return None if one == two == "no" else 5.0 if one == two else 1.0


def _any_colour(sentence: Sentence) -> frozenset[str] | None:
    return all_colours(sentence) or None


def _say_colours(colours: frozenset[str]) -> str:
    return " and ".join(sorted(colours))


def _claim(name: str, read: Any, **options: Any) -> None:  # noqa: ANN401  (any reader and options)
    """Registers a function, unless one for the same condition is there."""
    if REGISTRY.find(name) is None:
        labelling_function(name, **options)(read)


def _register(tree: str, family: str, node: Node) -> None:
    if node.parent is None:
        single = family
    elif node.words:
        single = node.name if node.name in node.words else node.words[0]
    else:
        return  # a group that has no word of its own
    many = plural(single) if single not in ("furniture", "clothing", "food") else single
    weight = 1.0 if node.parent is None else _FEW
    unclear = node.parent is None and tree in _VOID
    at = partial  # every reader is bound to its tree and node
    _claim(
        f"number of {many}",
        at(_number, tree=tree, of=node),
        family=f"number of {family}",
        compare=compare_counts,
        answer=say_count,
        weight=0.0 if unclear else weight,
        none_is_a_value=True,
        also=[f"number of {plural(w)}" for w in node.words[1:] if w != single],
    )
    _claim(
        f"color of {single}",
        at(_colour, tree=tree, of=node),
        family=f"color of {family}",
        compare=compare_colours,
        answer=_say_colours,
        weight=weight,
        also=[f"color of {w}" for w in node.words[1:]],
    )
    if node.children:
        _claim(
            f"type of {single}",
            at(_kind, tree=tree, of=node),
            family=f"type of {family}",
            compare=by_tree(tree, floor=_FLOORS.get(tree, 1.0)),
            answer=say_nodes,
            weight=weight,
            also=[many, single, *(f"type of {w}" for w in node.words[1:])],
        )
    _claim(
        f"presence of {single}",
        at(_presence, tree=tree, of=node),
        family="presence",
        compare=_compare_presence,
        weight=0.0 if unclear else _FEW,
        also=[single, *(f"presence of {w}" for w in node.words[1:])],
    )


labelling_function(
    "color of clothing",
    family="color of clothing",
    compare=compare_colours,
    answer=_say_colours,
    wordings=("clothing color", "color of the clothes", "what color the person wears"),
    also=("color of shirt", "color of outfit", "color of dress", "person's clothing color"),
)(_worn_colour)
labelling_function(
    "color of object",
    family="color of object",
    compare=compare_colours,
    answer=_say_colours,
    also=("color", "colors", "color of objects", "color of place", "color of scene"),
)(_any_colour)
for _name, _tree, _group, _also in (
    ("type of dessert", "food", "sweet", ("type of pastry", "type of cake", "dessert")),
    (
        "means of transport",
        "vehicles",
        "vehicle",
        (
            "means of transportation",
            "mode of transportation",
            "means of traversal",
            "type of transport",
            "method of transportation",
            "type of transportation",
            "mode of travel",
            "type of travel",
            "type of riding object",
            "vehicle being used",
            "type of vehicle being used",
            "type of boat",
            "type of bike",
            "type of aircraft",
            "means of travel",
            "vehicle being ridden",
            "type of flying object",
        ),
    ),
    (
        "food items",
        "food",
        "food",
        (
            "type of food item",
            "food being eaten",
            "food item",
            "contents of plate",
            "contents of dish",
            "type of meal",
            "food on table",
            "food on plate",
            "components of meal",
            "contents of bowl",
            "ingredients of food",
            "components of dish",
            "type of food items",
            "type of side",
            "ingredients in dish",
            "contents of meal",
        ),
    ),
    ("type of seating", "furniture", "seat", ("seating", "type of seating")),
    (
        "objects nearby",
        "objects",
        "object",
        (
            "items on table",
            "items on desk",
            "objects on desk",
            "objects in room",
            "contents of room",
            "objects on the table",
            "items in room",
            "object in room",
            "type of equipment",
            "equipment",
            "objects present",
            "contents of desk",
            "objects on bed",
            "objects in scene",
            "items in kitchen",
            "objects in kitchen",
            "contents of kitchen",
            "features of kitchen",
            "items on furniture",
            "equipment used",
            "type of tool used",
            "features of bathroom",
            "contents of bathroom",
            "objects in bathroom",
            "items in bathroom",
            "type of objects on table",
            "contents of table",
            "objects in background",
            "type of equipment used",
        ),
    ),
    (
        "object being held",
        "objects",
        "object",
        (
            "object held",
            "held object",
            "item being held",
            "object being carried",
            "object in hand",
            "item being carried",
            "object in dog's mouth",
            "object being used",
        ),
    ),
    (
        "animal being ridden",
        "animals",
        "animal",
        ("animal being ridden", "type of animal being ridden", "animal involved"),
    ),
    (
        "clothing worn",
        "clothing",
        "clothing",
        (
            "clothing of person",
            "attire of person",
            "type of attire",
            "type of uniform",
            "type of headwear",
            "headwear",
            "person's headgear",
            "type of outfit",
            "clothing",
        ),
    ),
):
    labelling_function(
        _name,
        family=f"type of {_TREES[_tree]}",
        compare=by_tree(_tree, floor=_FLOORS.get(_tree, 1.0)),
        answer=say_nodes,
        weight=0.0 if "being" in _name else 0.5,  # what is held or ridden is not told apart
        also=_also,
    )(partial(_kind, tree=_tree, of=taxonomy(_tree)[_group]))
for _tree, _family in _TREES.items():
    for _node in taxonomy(_tree).nodes.values():
        _register(_tree, _family, _node)
