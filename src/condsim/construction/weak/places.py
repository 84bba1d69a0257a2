"""Place, room, surface, weather, time of day, and more of the surroundings."""

from __future__ import annotations

from functools import partial

from condsim.construction.weak.compare import by_tree, graded, say_nodes, yes_or_no
from condsim.construction.weak.language import Sentence
from condsim.construction.weak.registry import ABSENT, Absent, labelling_function
from condsim.construction.weak.trees import Node, taxonomy

_PLACES = taxonomy("places")
_SIZES = ("tiny", "small", "medium", "large")
_WHO = (
    "person activity object dog animal action event item cat food sport vehicle child man woman "
    "player people group game train room"
).split()


def _of_tree(sentence: Sentence, *, tree: str, of: str) -> frozenset[Node] | None:
    nodes = sentence.nodes(tree, of=taxonomy(tree)[of])
    return nodes or None


def _room(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes("rooms")
    named = nodes - {taxonomy("rooms")["room"]}
    if named:
        return named
    return None if nodes or sentence.nodes(_PLACES, of=_PLACES["indoors"]) else ABSENT


def _indoors(sentence: Sentence) -> str | None:
    sides = {(*node.path, node)[1].name for node in sentence.nodes(_PLACES) if node.parent}
    return sides.pop() if len(sides) == 1 else None


def _size(sentence: Sentence) -> str | None:
    found = sentence.mentions("sizes")
    return found[0].node.name if found else None


def _water(sentence: Sentence) -> str:
    return "yes" if sentence.nodes(_PLACES, of=_PLACES["water place"]) else "no"


labelling_function(
    "location",
    family="place",
    compare=by_tree("places", floor=1.5),
    answer=say_nodes,
    weight=6.0,
    wordings=(
        "name of place",
        "type of location",
        "place",
        "setting",
        "where it takes place",
        "where the people are",
        "location of activity",
        "the surroundings",
    ),
    also=(
        "type of place",
        "type of view",
        "nature of place",
        "place of action",
        "type of landscape",
        "type of scene",
        "outdoor location",
        "type of terrain",
        "location description",
        "perspective",
        "landscape",
        "type of building",
        "type of market",
        "height off ground",
        "description of kitchen",
        "view",
        "type of playground equipment",
        "outdoor place",
        "type of environment",
        *(f"location of {one}" for one in _WHO),
    ),
)(partial(_of_tree, tree="places", of="place"))
labelling_function(
    "whether it is indoors or outdoors",
    family="place",
    compare=yes_or_no,
    wordings=("indoor or outdoor", "inside or outside"),
    also=("indoor", "outdoor", "outdoors", "indoors"),
)(_indoors)
labelling_function(
    "type of room",
    family="room",
    compare=by_tree("rooms"),
    answer=say_nodes,
    weight=4.0,
    wordings=("room type", "function of room", "name of the room", "which room it is"),
    also=(
        "room",
        "room's function",
        "indoor room",
        "type of indoor room",
        "indoor location",
        "purpose of room",
        "type of indoor location",
        "room function",
        "type of bathroom",
        "kitchen",
        "bathroom",
        "name of rooms",
        "number of rooms",
        "room description",
    ),
)(_room)
labelling_function(
    "type of surface",
    family="surface",
    compare=by_tree("surfaces"),
    answer=say_nodes,
    weight=2.0,
    wordings=(
        "type of terrain",
        "ground surface",
        "riding surface",
        "what the ground is covered with",
    ),
    also=(
        "surface",
        "ground",
        "ground cover",
        "ground material",
        "terrain",
        "type of riding surface",
        "nature of riding surface",
        "nature of terrain",
        "type of ground",
        "ground covering",
        "supporting surface",
        "type of riding material",
        "surface of object",
        "resting surface",
    ),
)(partial(_of_tree, tree="surfaces", of="surface"))
labelling_function(
    "weather",
    family="weather",
    compare=by_tree("weather"),
    answer=say_nodes,
    wordings=("weather condition", "weather conditions", "what the weather is like", "season"),
    also=(
        "condition of weather",
        "type of weather",
        "season of year",
        "temperature",
        "time of year",
    ),
)(partial(_of_tree, tree="weather", of="weather"))
labelling_function(
    "time of day",
    family="time of day",
    compare=by_tree("times"),
    answer=say_nodes,
    wordings=("whether it is day or night", "what time of day it is"),
    also=("time", "day or night", "lighting"),
)(partial(_of_tree, tree="times", of="time"))
labelling_function(
    "size of object",
    family="size",
    weight=0.0,  # seldom told of the same thing
    compare=graded(*_SIZES),
    wordings=("size of animal", "how large it is"),
    also=(
        "size",
        "size of dog",
        "size of room",
        "size of bed",
        "size of wave",
        "size of ball",
        "size of food",
    ),
)(_size)
labelling_function(
    "material of object",
    family="material",
    compare=by_tree("materials"),
    answer=say_nodes,
    wordings=("what it is made of", "type of material"),
    also=("material", "building material", "material of furniture"),
)(partial(_of_tree, tree="materials", of="material"))
labelling_function(
    "proximity to water",
    family="presence",
    compare=yes_or_no,
    wordings=("presence of water", "whether there is water"),
    also=("presence of body of water", "wetness", "presence of water body"),
)(_water)
labelling_function(
    "type of water body",
    family="water body",
    compare=by_tree("places"),
    answer=say_nodes,
    wordings=("body of water", "kind of water"),
    also=("type of body of water", "type of water", "water"),
)(partial(_of_tree, tree="places", of="water place"))
