"""Functions on people, and on what people, animals and vehicles do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from condsim.construction.weak.counting import Count, compare_counts, read_count, say_count
from condsim.construction.weak.functions import (
    ABSENT,
    Absent,
    LabellingFunction,
    built_in,
    by_tree,
    graded,
    read_nodes,
    say_nodes,
)
from condsim.construction.weak.language import Node, Sentence, taxonomy
from condsim.construction.weak.words import names_by_word, plural

_PEOPLE = taxonomy("people")
_SPORT = taxonomy("activities")["sport"]
_AGES = tuple(taxonomy("age").nodes)
_LEVELS = (0.0, 0.4, 1.0, 2.3, 3.2, 4.0, 6.0)  # of the ages, in their order


def doing_functions() -> Iterator[LabellingFunction]:
    """Gives those on sport, activity, action, posture, speed and mood."""
    yield built_in(
        "type of sport",
        _sport,
        by_tree("activities"),
        family="sport",
        answer=say_nodes,
        weight=8.0,
    )
    yield built_in(
        "type of activity",
        _activity,
        by_tree("activities", floor=2.0),
        family="activity",
        answer=say_nodes,
        weight=6.0,
    )
    for who, tree, weight in (
        ("person", "people", 1.0),
        ("animal", "animals", 0.3),
        ("vehicle", "vehicles", 0.1),
    ):
        yield built_in(
            f"action of {who}",
            partial(_doing, tree="actions", who=tree),
            by_tree("actions", floor=2.0),
            family=f"action of {who}",
            answer=say_nodes,
            weight=5 * weight,
        )
        yield built_in(
            f"position of {who}",
            partial(_doing, tree="postures", who=tree),
            by_tree("postures"),
            family=f"position of {who}",
            answer=say_nodes,
            weight=2 * weight,
        )
        yield built_in(
            f"speed of {who}",
            partial(_speed, who=tree),
            graded("still", "slow", "moderate", "fast"),
            family=f"speed of {who}",
            weight=weight,
        )
    yield built_in(
        "mood of people",
        partial(_doing, tree="moods", who="people"),
        by_tree("moods"),
        family="mood",
        answer=say_nodes,
        weight=0.0,  # too seldom told
    )


def people_functions() -> Iterator[LabellingFunction]:
    """Gives those on number, gender, age, occupation and relations of people."""
    yield _number("person", weight=12.0, none_is_a_value=True)
    for noun in ("man", "woman", "child", "boy", "girl", "baby"):
        yield _number(noun, weight=0.5)
    for noun, activity in names_by_word("functions", "doers").items():
        yield built_in(
            f"number of {plural(noun)}",
            partial(_number_doing, activity=activity),
            compare_counts,
            family="number of people",
            answer=say_count,
            weight=0.2,
        )
    yield built_in("gender of person", _gender, _compare_genders, family="gender", weight=4.0)
    yield built_in(
        "age of person", _ages, _compare_ages, family="age", answer=_say_ages, weight=3.0
    )
    yield built_in(
        "occupation of person",
        partial(read_nodes, tree="people", of="role", where="people"),
        by_tree("people"),
        family="occupation",
        answer=say_nodes,
    )
    yield built_in(
        "type of person",
        partial(read_nodes, tree="people", of="person", where="people"),
        by_tree("people"),
        family="type of person",
        answer=say_nodes,
    )
    yield built_in(
        "relationship between people",
        partial(read_nodes, tree="relations", where="people"),
        by_tree("relations"),
        family="relationship",
        answer=say_nodes,
    )


def _number(noun: str, *, weight: float, none_is_a_value: bool = False) -> LabellingFunction:
    return built_in(
        f"number of {plural(noun)}",
        partial(read_count, tree="people", of=_PEOPLE[noun]),
        compare_counts,
        family="number of people",
        answer=say_count,
        weight=weight,
        none_is_a_value=none_is_a_value,
    )


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
