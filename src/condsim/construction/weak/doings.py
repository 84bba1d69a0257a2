"""Sport, activity, action, posture, speed and mood."""

from __future__ import annotations

from functools import partial

from condsim.construction.weak.compare import by_tree, graded, say_nodes
from condsim.construction.weak.registry import ABSENT, Absent, labelling_function
from condsim.construction.weak.sentence import Sentence
from condsim.construction.weak.taxonomy import Node, taxonomy

__all__: list[str] = []

_ACTIVITIES = taxonomy("activities")
_SPEEDS = ("still", "slow", "moderate", "fast")
_PERSONS = (
    "man woman boy girl child player rider skateboarder surfer skier snowboarder individual worker "
    "subject batter cyclist skater biker baby group performer pitcher racer climber swimmer "
    "motorcyclist runner teammate object skateboard"
).split()
_ANIMALS = ("dog", "cat", "horse", "bird", "elephant")
_VEHICLES = ("train", "bus", "plane", "airplane", "boat", "motorcycle", "bicycle", "bike")
_ACTIONS = (
    "action", "type of action", "physical action", "type of movement", "type of motion", "movement",
    "direction of movement", "motion", "type of interaction", "interaction between people",
    "direction of travel", "physical motion", "cooking activity", "type of trick being performed",
)  # fmt: skip


def _doing(sentence: Sentence, *, tree: str, who: str) -> frozenset[Node] | Absent | None:
    """Reads what follows the first mention of who does it, or the first thing done."""
    doers = sentence.mentions(who)
    if not doers:
        return ABSENT
    found = [hit for hit in sentence.mentions(tree) if hit.node.parent]
    after = [hit.node for hit in found if hit.start >= doers[0].start][:2]
    return frozenset(after or [hit.node for hit in found[:1]]) or None


def _sport(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes(_ACTIVITIES, of=_ACTIVITIES["sport"])
    return nodes - {_ACTIVITIES["sport"]} or None if nodes else ABSENT


def _activity(sentence: Sentence) -> frozenset[Node] | None:
    """Sports where there are any: "a surfer sits" is about surfing."""
    nodes = sentence.nodes(_ACTIVITIES)
    sports = frozenset(node for node in nodes if node.within(_ACTIVITIES["sport"]))
    return sports or nodes or None


def _speed(sentence: Sentence, *, who: str) -> str | Absent | None:
    if not sentence.mentions(who):
        return ABSENT
    found = sentence.mentions("speeds")
    return max((hit.node for hit in found), key=lambda node: node.order).name if found else None


labelling_function(
    "type of sport",
    family="sport",
    compare=by_tree("activities"),
    answer=say_nodes,
    weight=8.0,
    wordings=("sport being played", "sport", "name of the sport", "which sport it is"),
    also=(
        "type of game",
        "game",
        "game being played",
        "type of winter sport",
        "type of water sport",
        "type of competition",
        "type of martial arts",
        "type of race",
        "winter sport",
        "type of athletic activity",
        "type of event",
        "type of match",
        "type of sport activity",
        "type of sports activity",
        "water sport",
        "type of stunt",
        "type of board",
        "type of trick",
    ),
)(_sport)
labelling_function(
    "type of activity",
    family="activity",
    compare=by_tree("activities", floor=2.0),
    answer=say_nodes,
    weight=6.0,
    wordings=(
        "activity",
        "activity of person",
        "person's activity",
        "type of hobby",
        "hobby",
        "what people are doing",
        "activity of people",
    ),
    also=(
        "type of recreational activity",
        "recreational activity",
        "outdoor activity",
        "activity type",
        "type of outdoor activity",
        "type of water activity",
        "physical activity",
        "skateboarding activity",
        "type of skiing activity",
        "activity involving skateboard",
        "reason for gathering",
        "type of activity in water",
        "type of physical activity",
        "type of play",
        "type of performance",
        "type of entertainment",
        "activity in snow",
        "activity in water",
        "type of action",
        "type of ride",
        "type of work being done",
        "purpose of activity",
        "type of exercise",
        "water activity",
        "leisure activity",
        "type of leisure activity",
        *(f"activity of {one}" for one in _PERSONS),
    ),
)(_activity)
for _who, _tree, _weight, _others in (
    ("person", "people", 1.0, _PERSONS),
    ("animal", "animals", 0.3, _ANIMALS),
    ("vehicle", "vehicles", 0.1, _VEHICLES),
):
    _of = [f"{{}} of {one}" for one in (_who, *_others)]
    labelling_function(
        f"action of {_who}",
        family=f"action of {_who}",
        compare=by_tree("actions", floor=2.0),
        answer=say_nodes,
        weight=5 * _weight,
        wordings=(f"what the {_who} is doing", f"motion of {_who}", f"movement of the {_who}"),
        also=[
            head.format(what)
            for head in _of
            for what in ("action", "type of action", "interaction")
        ]
        + ([] if _tree == "people" else [head.format("activity") for head in _of])
        + (list(_ACTIONS) if _tree == "people" else []),
    )(partial(_doing, tree="actions", who=_tree))
    labelling_function(
        f"position of {_who}",
        family=f"position of {_who}",
        compare=by_tree("postures"),
        answer=say_nodes,
        weight=2 * _weight,
        wordings=(f"{_who}'s posture", f"body posture of the {_who}"),
        also=[head.format("position") for head in _of]
        + (["position", "type of position", "body position"] if _tree == "people" else []),
    )(partial(_doing, tree="postures", who=_tree))
    labelling_function(
        f"speed of {_who}",
        family=f"speed of {_who}",
        compare=graded(*_SPEEDS),
        weight=_weight,
        also=[head.format("speed") for head in _of]
        + (
            ["speed", "intensity of activity", "level of physical activity"]
            if _tree == "people"
            else []
        ),
    )(partial(_speed, who=_tree))
labelling_function(
    "mood of people",
    family="mood",
    weight=0.0,  # too seldom told
    compare=by_tree("moods"),
    answer=say_nodes,
    wordings=("sentiment of people", "emotion of the person", "facial expression"),
    also=("mood", "mood of person", "mood of child", "mood of animal", "mood of dog"),
)(partial(_doing, tree="moods", who="people"))
