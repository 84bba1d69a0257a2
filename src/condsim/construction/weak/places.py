"""Functions on place, room, surface, weather, time of day, and more of the surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from condsim.construction.weak.functions import (
    ABSENT,
    Absent,
    LabellingFunction,
    built_in,
    by_tree,
    graded,
    read_nodes,
    say_nodes,
    yes_or_no,
)
from condsim.construction.weak.language import Node, Sentence, taxonomy

_PLACES = taxonomy("places")


def place_functions() -> Iterator[LabellingFunction]:
    """Gives them all."""
    yield _of_tree("location", "places", family="place", weight=6.0, floor=1.5)
    yield built_in("whether it is indoors or outdoors", _indoors, yes_or_no, family="place")
    yield built_in(
        "type of room", _room, by_tree("rooms"), family="room", answer=say_nodes, weight=4.0
    )
    yield _of_tree("type of surface", "surfaces", family="surface", weight=2.0)
    yield _of_tree("weather", "weather", family="weather")
    yield _of_tree("time of day", "times", family="time of day")
    yield built_in(
        "size of object",
        _size,
        graded("tiny", "small", "medium", "large"),
        family="size",
        weight=0.0,  # seldom told of the same thing
    )
    yield _of_tree("material of object", "materials", family="material")
    yield built_in("proximity to water", _water, yes_or_no, family="presence")
    yield _of_tree("type of water body", "places", family="water body", of="water place")


def _of_tree(
    name: str,
    tree: str,
    *,
    family: str,
    weight: float = 1.0,
    floor: float = 1.0,
    of: str | None = None,
) -> LabellingFunction:
    return built_in(
        name,
        partial(read_nodes, tree=tree, of=of),
        by_tree(tree, floor=floor),
        family=family,
        answer=say_nodes,
        weight=weight,
    )


def _room(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes("rooms")
    named = nodes - {taxonomy("rooms")["room"]}
    if named:
        return named
    return None if nodes or sentence.nodes(_PLACES, of=_PLACES["indoors"]) else ABSENT


def _indoors(sentence: Sentence) -> str | None:
    sides = {node.path[1].name for node in sentence.nodes(_PLACES) if node.parent}
    return sides.pop() if len(sides) == 1 else None


def _size(sentence: Sentence) -> str | None:
    found = sentence.mentions("sizes")
    return found[0].node.name if found else None


def _water(sentence: Sentence) -> str:
    return "yes" if sentence.nodes(_PLACES, of=_PLACES["water place"]) else "no"
