"""Sport, activity, action, posture, speed and mood."""

from __future__ import annotations

from functools import partial

from condsim.construction.weak.compare import by_tree, graded, say_nodes, steps
from condsim.construction.weak.counting import Count, compare_counts, count, say_count
from condsim.construction.weak.forms import plural
from condsim.construction.weak.language import Sentence
from condsim.construction.weak.registry import ABSENT, Absent, labelling_function
from condsim.construction.weak.trees import Node, taxonomy

_PEOPLE = taxonomy("people")
_CHILDLIKE = frozenset("baby toddler child".split())
_GENDERS = {"man": "male", "boy": "male", "woman": "female", "girl": "female"}


def _number(sentence: Sentence, *, of: Node) -> Count | Absent | None:
    found = sentence.mentions(_PEOPLE)
    if not found:
        return ABSENT
    wanted = [hit for hit in found if hit.node.within(of)]
    return count(sentence, wanted)


def _number_doing(sentence: Sentence, *, doing: str) -> Count | Absent | None:
    """Counts people, if they do what makes them surfers, players and so on."""
    if not sentence.mentions("activities", of=taxonomy("activities")[doing]):
        return None
    return _number(sentence, of=_PEOPLE["person"])


def _gender(sentence: Sentence) -> str | Absent | None:
    genders = {node.name for node in sentence.nodes("gender")}
    if genders:
        return "both" if len(genders) == 2 else genders.pop()
    return None if sentence.mentions(_PEOPLE) else ABSENT


def _compare_genders(one: str, two: str) -> float:
    return 5.0 if one == two else 3.0 if "both" in (one, two) else 1.0


def _age(sentence: Sentence) -> frozenset[int] | Absent | None:
    ages = frozenset(hit.node.order for hit in sentence.mentions("age"))
    if ages:
        return ages
    return None if sentence.mentions(_PEOPLE) else ABSENT


_apart = steps(5.0, 4.0, 3.0, 2.0, 1.0)
_LEVELS = (0.0, 0.4, 1.0, 2.3, 3.2, 4.0, 6.0)  # baby, toddler, child, teen, young adult, adult, old


def _compare_ages(one: frozenset[int], two: frozenset[int]) -> float:
    def near(some: frozenset[int], others: frozenset[int]) -> float:
        gaps = [min(abs(_LEVELS[a] - _LEVELS[b]) for b in others) for a in some]
        return sum(gaps) / len(gaps)

    return max(1.0, 5.0 - 1.3 * (near(one, two) + near(two, one)) / 2)


def _say_ages(ages: frozenset[int]) -> str:
    names = list(taxonomy("age").nodes)
    return " and ".join(names[age] for age in sorted(ages))


def _roles(sentence: Sentence, *, of: Node) -> frozenset[Node] | Absent | None:
    found = sentence.mentions(_PEOPLE)
    if not found:
        return ABSENT
    return sentence.nodes(_PEOPLE, of=of) or None


def _relation(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes("relations")
    if nodes:
        return nodes
    return None if sentence.mentions(_PEOPLE) else ABSENT


_DOERS = {  # what a person must be doing to be one
    "player": "sport", "athlete": "sport", "competitor": "sport", "racer": "sport",
    "rider": "sport", "surfer": "surfing", "skier": "skiing", "cyclist": "cycling",
    "biker": "wheel sport", "swimmer": "swim sport", "skateboarder": "skateboarding",
    "runner": "running", "snowboarder": "snowboarding", "climber": "climbing", "hiker": "hiking",
    "skater": "skating", "motorcyclist": "motorcycling", "performer": "arts", "musician": "music",
    "dancer": "dancing", "singer": "singing", "worker": "work", "soldier": "soldiering",
}  # fmt: skip
_ANYONE = ("participant", "adult", "friend", "passenger", "customer", "driver", "subject", *_DOERS)
_SOMEONE = ("person", "man", "woman", "child", "boy", "girl", "baby", "kid", *_ANYONE)

labelling_function(
    "number of people",
    family="number of people",
    compare=compare_counts,
    answer=say_count,
    weight=12.0,
    none_is_a_value=True,
    wordings=(
        "how many people are present",
        "number of persons",
        "the size of the group of people",
    ),
    also=(
        "group size",
        "size of group",
        "size of crowd",
        "crowd size",
        "number of participants",
        "number of adults",
        "number of observers",
        "number of spectators",
        "number of subjects",
        "number of passengers",
        "number of customers",
        "number of friends",
    ),
)(partial(_number, of=_PEOPLE["person"]))
for _name in ("man", "woman", "child", "boy", "girl", "baby"):
    labelling_function(
        f"number of {plural(_name)}",
        family="number of people",
        compare=compare_counts,
        answer=say_count,
        weight=0.5,
    )(partial(_number, of=_PEOPLE[_name]))
for _name, _does in _DOERS.items():
    labelling_function(
        f"number of {plural(_name)}",
        family="number of people",
        compare=compare_counts,
        answer=say_count,
        weight=0.2,
    )(partial(_number_doing, doing=_does))

labelling_function(
    "gender of person",
    family="gender",
    compare=_compare_genders,
    weight=4.0,
    wordings=("gender of people", "sex of the people", "gender of persons"),
    also=[f"gender of {one}" for one in _SOMEONE],
)(_gender)
labelling_function(
    "age of person",
    family="age",
    compare=_compare_ages,
    answer=_say_ages,
    weight=3.0,
    wordings=("age of people", "ages of people", "how old the people are"),
    also=[f"age of {one}" for one in _SOMEONE] + ["age group", "age group of person"],
)(_age)
labelling_function(
    "occupation of person",
    family="occupation",
    compare=by_tree("people"),
    answer=say_nodes,
    wordings=("person's occupation", "profession of people", "type of job"),
    also=("occupation", "type of work", "type of worker", "job", "person's role", "type of job"),
)(partial(_roles, of=_PEOPLE["role"]))
labelling_function(
    "type of person",
    family="type of person",
    compare=by_tree("people"),
    answer=say_nodes,
    also=("person", "type of people", "presence of person", "type of athlete", "type of player"),
)(partial(_roles, of=_PEOPLE["person"]))
labelling_function(
    "relationship between people",
    family="relationship",
    compare=by_tree("relations"),
    answer=say_nodes,
    wordings=("how the people are related", "relation of the people"),
    also=("relationship", "relationship of people", "type of relationship", "relation of people"),
)(_relation)


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
