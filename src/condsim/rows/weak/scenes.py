"""Functions on people, on what is done, and on where and when it happens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from condsim.rows.weak.functions import (
    ABSENT,
    Absent,
    LabellingFunction,
    built_in,
    graded,
    node_function,
    read_nodes,
)
from condsim.rows.weak.language import Node, Sentence, names_by_word, plural, taxonomy
from condsim.rows.weak.things import Count, compare_counts, read_count, say_count

_PEOPLE = taxonomy("people")
_PLACES = taxonomy("places")
_SPORT = taxonomy("activities")["sport"]
_AGES = tuple(taxonomy("age").nodes)
_LEVELS = (0.0, 0.4, 1.0, 2.3, 3.2, 4.0, 6.0)  # of the ages, in their order


def doing_functions() -> Iterator[LabellingFunction]:
    """Gives those on sport, activity, action, posture, speed and mood."""
    yield node_function("type of sport", "activities", _sport, family="sport", weight=8.0)
    yield node_function(
        "type of activity", "activities", _activity, floor=2.0, family="activity", weight=6.0
    )
    for who, tree, weight in (
        ("person", "people", 1.0),
        ("animal", "animals", 0.3),
        ("vehicle", "vehicles", 0.1),
    ):
        action, posture = (partial(_doing, tree=what, who=tree) for what in ("actions", "postures"))
        yield node_function(f"action of {who}", "actions", action, floor=2.0, weight=5 * weight)
        yield node_function(f"position of {who}", "postures", posture, weight=2 * weight)
        yield built_in(
            f"speed of {who}",
            partial(_speed, who=tree),
            graded("still", "slow", "moderate", "fast"),
            weight=weight,
        )
    mood = partial(_doing, tree="moods", who="people")
    yield node_function("mood of people", "moods", mood, family="mood", weight=0.0)  # seldom told


def people_functions() -> Iterator[LabellingFunction]:
    """Gives those on number, gender, age, occupation and relations of people."""
    counted = {"person": 12.0, **dict.fromkeys("man woman child boy girl baby".split(), 0.5)}
    for noun, weight in counted.items():
        yield built_in(
            f"number of {plural(noun)}",
            partial(read_count, tree="people", of=_PEOPLE[noun]),
            compare_counts,
            say_count,
            family="number of people",
            weight=weight,
            none_is_a_value=noun == "person",
        )
    for noun, activity in names_by_word("functions", "doers").items():
        yield built_in(
            f"number of {plural(noun)}",
            partial(_number_doing, activity=activity),
            compare_counts,
            say_count,
            family="number of people",
            weight=0.2,
        )
    yield built_in("gender of person", _gender, _compare_genders, family="gender", weight=4.0)
    yield built_in("age of person", _ages, _compare_ages, _say_ages, family="age", weight=3.0)
    person = partial(read_nodes, tree="people", where="people")
    role = partial(person, of="role")
    yield node_function("occupation of person", "people", role, family="occupation")
    yield node_function("type of person", "people", person)
    relation = partial(read_nodes, tree="relations", where="people")
    yield node_function("relationship between people", "relations", relation, family="relationship")


def place_functions() -> Iterator[LabellingFunction]:
    """Gives those on place, room, surface, weather, time of day and more of the surroundings."""
    yield node_function("location", "places", floor=1.5, family="place", weight=6.0)
    yield built_in("whether it is indoors or outdoors", _indoors, family="place")
    yield node_function("type of room", "rooms", _room, family="room", weight=4.0)
    yield node_function("type of surface", "surfaces", family="surface", weight=2.0)
    yield node_function("weather", "weather")
    yield node_function("time of day", "times")
    sizes = graded("tiny", "small", "medium", "large")
    yield built_in("size of object", _size, sizes, family="size", weight=0.0)  # seldom of the same
    yield node_function("material of object", "materials", family="material")
    yield built_in("proximity to water", _water, family="presence")
    water = partial(read_nodes, tree="places", of="water place")
    yield node_function("type of water body", "places", water, family="water body")


def _number_doing(sentence: Sentence, *, activity: str) -> Count | Absent | None:
    """Counts people, if they do what makes them surfers, players and so on."""
    if not sentence.mentions("activities", of=taxonomy("activities")[activity]):
        return None
    return read_count(sentence, tree="people", of=_PEOPLE["person"])


def _gender(sentence: Sentence) -> str | Absent | None:
    genders = read_nodes(sentence, tree="gender", where="people")
    if not isinstance(genders, frozenset):
        return genders
    return "both" if len(genders) == 2 else next(iter(genders)).name


def _compare_genders(one: str, two: str) -> float:
    return 5.0 if one == two else 3.0 if "both" in (one, two) else 1.0


def _ages(sentence: Sentence) -> frozenset[int] | Absent | None:
    """Places of the ages in their tree."""
    ages = frozenset(hit.node.order for hit in sentence.mentions("age"))
    if ages:
        return ages
    return None if sentence.mentions("people") else ABSENT


def _compare_ages(one: frozenset[int], two: frozenset[int]) -> float:
    def apart(some: frozenset[int], others: frozenset[int]) -> float:
        gaps = [min(abs(_LEVELS[a] - _LEVELS[b]) for b in others) for a in some]
        return sum(gaps) / len(gaps)

    return max(1.0, 5.0 - 1.3 * (apart(one, two) + apart(two, one)) / 2)


def _say_ages(ages: frozenset[int]) -> str:
    return " and ".join(_AGES[age] for age in sorted(ages))


def _doing(sentence: Sentence, *, tree: str, who: str) -> frozenset[Node] | Absent | None:
    """Reads what follows the first mention of who does it, or the first thing done."""
    doers = sentence.mentions(who)
    if not doers:
        return ABSENT
    found = [hit for hit in sentence.mentions(tree) if hit.node.parent]
    after = [hit.node for hit in found if hit.start >= doers[0].start][:2]
    return frozenset(after or [hit.node for hit in found[:1]]) or None


def _sport(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes("activities", of=_SPORT)
    return nodes - {_SPORT} or None if nodes else ABSENT


def _activity(sentence: Sentence) -> frozenset[Node] | None:
    """Sports where there are any: "a surfer sits" is about surfing."""
    nodes = sentence.nodes("activities")
    return frozenset(node for node in nodes if node.within(_SPORT)) or nodes or None


def _speed(sentence: Sentence, *, who: str) -> str | Absent | None:
    if not sentence.mentions(who):
        return ABSENT
    found = sentence.mentions("speeds")
    return max((hit.node for hit in found), key=lambda node: node.order).name if found else None


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
