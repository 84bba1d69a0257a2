"""Functions on place, room, surface, weather, time of day, and more of the surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from condsim.construction.weak.functions import (
    ABSENT,
    Absent,
    LabellingFunction,
    built_in,
    graded,
    node_function,
    read_nodes,
    yes_or_no,
)
from condsim.construction.weak.language import Node, Sentence, taxonomy

_PLACES = taxonomy("places")


def place_functions() -> Iterator[LabellingFunction]:
    """Gives them all."""
    place = partial(read_nodes, tree="places")
    yield node_function("location", place, "places", floor=1.5, family="place", weight=6.0)
    yield built_in("whether it is indoors or outdoors", _indoors, yes_or_no, family="place")
    yield node_function("type of room", _room, "rooms", family="room", weight=4.0)
    surface = partial(read_nodes, tree="surfaces")
    yield node_function("type of surface", surface, "surfaces", family="surface", weight=2.0)
    yield node_function("weather", partial(read_nodes, tree="weather"), "weather")
    yield node_function("time of day", partial(read_nodes, tree="times"), "times")
    sizes = graded("tiny", "small", "medium", "large")
    yield built_in("size of object", _size, sizes, family="size", weight=0.0)  # seldom of the same
    material = partial(read_nodes, tree="materials")
    yield node_function("material of object", material, "materials", family="material")
    yield built_in("proximity to water", _water, yes_or_no, family="presence")
    water = partial(read_nodes, tree="places", of="water place")
    yield node_function("type of water body", water, "places", family="water body")


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
