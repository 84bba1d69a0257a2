"""Number, gender, age and occupation of people, and what they are to each other."""

from __future__ import annotations

from functools import partial

from condsim.construction.weak.compare import by_tree, say_nodes, steps
from condsim.construction.weak.counting import Count, compare_counts, count, say_count
from condsim.construction.weak.forms import plural
from condsim.construction.weak.registry import ABSENT, Absent, labelling_function
from condsim.construction.weak.sentence import Sentence
from condsim.construction.weak.taxonomy import Node, taxonomy

__all__: list[str] = []

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
for _name, _doing in _DOERS.items():
    labelling_function(
        f"number of {plural(_name)}",
        family="number of people",
        compare=compare_counts,
        answer=say_count,
        weight=0.2,
    )(partial(_number_doing, doing=_doing))

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
