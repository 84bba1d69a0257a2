"""Functions on captions: on things, on people, on what they do, and on where and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from condsim_annotation.weak.counts import (
    Count,
    compare_counts,
    named_mentions,
    read_count,
    say_count,
)
from condsim_annotation.weak.functions import (
    ABSENT,
    Absent,
    LabelingFunction,
    built_in,
    graded,
    node_function,
    read_nodes,
    value_or_absent,
)
from condsim_annotation.weak.language import (
    Mention,
    Node,
    Sentence,
    listed,
    names_by_word,
    plural,
    taxonomy,
)

_FAMILIES = {
    "animals": "animal",
    "vehicles": "vehicle",
    "food": "food",
    "furniture": "furniture",
    "instruments": "instrument",
    "clothing": "clothing",
    "objects": "object",
}
_UNCOUNTABLE = ("furniture", "clothing", "food")
# "Number of objects" and the like say little.
_BROAD_TREES = ("objects", *_UNCOUNTABLE)
# Weight of a function for one word, where the frequency of conditions is not known.
_WEIGHT_OF_WORD = 0.05
# Name, tree, node and weight; 0 where captions do not say which thing is held.
_KINDS = (
    ("type of dessert", "food", "sweet", 0.5),
    ("means of transport", "vehicles", "vehicle", 0.5),
    ("food items", "food", "food", 0.5),
    ("type of seating", "furniture", "seat", 0.5),
    ("objects nearby", "objects", "object", 0.5),
    ("object being held", "objects", "object", 0.0),
    ("animal being ridden", "animals", "animal", 0.0),
    ("clothing worn", "clothing", "clothing", 0.5),
)
_COLORS = names_by_word("colors", "colors")
_NEAR_COLORS = {
    frozenset((entry.name, word)) for entry in listed("colors", "near") for word in entry.words
}
_WEARS = frozenset("in wearing wears dressed clad".split())
_DETERMINERS = frozenset("a an any the other".split())
_LINKS = frozenset("is are was were".split())
_JOINS = frozenset(("and", ",", "&", "or"))


def thing_functions() -> Iterator[LabelingFunction]:
    """Make the functions on no single noun."""
    yield built_in("color of clothing", _read_worn_color, _compare_colors, _say_colors)
    yield built_in("color of object", _read_any_color, _compare_colors, _say_colors)
    for name, tree, node, weight in _KINDS:
        yield _kind_function(name, tree, node, weight=weight)


def noun_functions() -> Iterator[LabelingFunction]:
    """Make the functions on each noun of the trees."""
    for tree, family in _FAMILIES.items():
        for node in taxonomy(tree).nodes.values():
            if node.parent is None:
                yield from _functions_of(tree, node, family)
            # A group without its own word has no functions.
            elif node.words:
                noun = node.name if node.name in node.words else node.words[0]
                yield from _functions_of(tree, node, noun)


def _functions_of(tree: str, node: Node, noun: str) -> Iterator[LabelingFunction]:
    family, of = _FAMILIES[tree], node.name
    nouns = noun if noun in _UNCOUNTABLE else plural(noun)
    synonyms = node.words[1:]
    weight = _WEIGHT_OF_WORD if node.parent else 1.0
    is_specific = node.parent is not None or tree not in _BROAD_TREES
    yield built_in(
        f"number of {nouns}",
        partial(read_count, tree=tree, of=of),
        compare_counts,
        say_count,
        family=f"number of {family}",
        aliases=[f"number of {plural(word)}" for word in synonyms if word != noun],
        weight=weight if is_specific else 0.0,
        absence_counts=True,
    )
    yield built_in(
        f"color of {noun}",
        partial(_read_color, tree=tree, of=of),
        _compare_colors,
        _say_colors,
        family=f"color of {family}",
        aliases=[f"color of {word}" for word in synonyms],
        weight=weight,
    )
    if node.children:
        aliases = [nouns, noun, *(f"type of {word}" for word in synonyms)]
        yield _kind_function(f"type of {noun}", tree, of, aliases=aliases, weight=weight)
    yield built_in(
        f"presence of {noun}",
        partial(_read_presence, tree=tree, of=of),
        _compare_presence,
        family="presence",
        aliases=[noun, *(f"presence of {word}" for word in synonyms)],
        weight=_WEIGHT_OF_WORD if is_specific else 0.0,
    )


def _kind_function(
    name: str, tree: str, of: str, *, aliases: Sequence[str] = (), weight: float
) -> LabelingFunction:
    read, floor = partial(_read_kind, tree=tree, of=of), 2.0 if tree in _BROAD_TREES else 1.0
    family = f"type of {_FAMILIES[tree]}"
    return node_function(name, read, floor=floor, family=family, aliases=aliases, weight=weight)


def _read_kind(sentence: Sentence, *, tree: str, of: str) -> frozenset[Node] | Absent | None:
    nodes = read_nodes(sentence, tree=tree, of=of, where=tree)
    if not isinstance(nodes, frozenset):
        return nodes
    return frozenset(node for node in nodes if node.name != of) or None


def _read_presence(sentence: Sentence, *, tree: str, of: str) -> str:
    for mention in sentence.mentions(tree, of=of):
        # "Without any other dog".
        before = [word for word in sentence.before(mention) if word not in _DETERMINERS]
        if before[-1:] not in (["no"], ["without"]):
            return "yes"
    return "no"


def _compare_presence(presence1: str, presence2: str) -> float | None:
    """Compare presences; unknown for two absences, since captions do not list what is missing."""
    if presence1 == presence2 == "no":
        return None
    return 5.0 if presence1 == presence2 else 1.0


def _read_color(sentence: Sentence, *, tree: str, of: str) -> frozenset[str] | Absent | None:
    return value_or_absent(_colors_of(sentence, named_mentions(sentence, tree, of)), sentence, tree)


def _read_worn_color(sentence: Sentence) -> frozenset[str] | Absent | None:
    mentions = sentence.mentions("clothing")
    colors = _colors_of(sentence, mentions) | _worn_colors(sentence)
    return colors or (None if mentions else value_or_absent(None, sentence, "people"))


def _read_any_color(sentence: Sentence) -> frozenset[str] | None:
    return frozenset(_COLORS[word] for word in sentence.words if word in _COLORS) or None


def _say_colors(colors: frozenset[str]) -> str:
    return " and ".join(sorted(colors))


def _colors_of(sentence: Sentence, mentions: Sequence[Mention]) -> frozenset[str]:
    """Read the colors of things that a sentence mentions."""
    colors: set[str] = set()
    for mention in mentions:
        before = sentence.before(mention)
        for index in range(mention.start - 1, max(mention.start - 9, -1), -1):
            word = sentence.words[index]
            joins_colors = word in _JOINS and sentence.word(index - 1) in _COLORS
            if word in _COLORS:
                colors.add(_COLORS[word])
            elif not joins_colors and word not in before:
                break
        following = sentence.word(mention.stop + 1)
        if sentence.word(mention.stop) in _LINKS and following in _COLORS:
            colors.add(_COLORS[following])
    return frozenset(colors)


def _worn_colors(sentence: Sentence) -> frozenset[str]:
    """Read the colors in "a man in red" and "dressed in black and white"."""
    colors: set[str] = set()
    for start, verb in enumerate(sentence.words):
        if verb not in _WEARS:
            continue
        for index, word in enumerate(sentence.words[start + 1 :]):
            if word in _COLORS:
                colors.add(_COLORS[word])
            elif word not in ("all", "a") and not (index and word in _JOINS):
                break
    return frozenset(colors)


def _compare_colors(colors1: frozenset[str], colors2: frozenset[str]) -> float:
    if colors1 == colors2:
        return 5.0
    shared = len(colors1 & colors2) / len(colors1 | colors2)
    if shared:
        return 4.0 if shared >= 0.5 else 3.0
    near = any(frozenset((a, b)) in _NEAR_COLORS for a in colors1 for b in colors2)
    return 2.0 if near else 1.0


_AGES = tuple(taxonomy("age").nodes)
# Positions of the ages on one scale, in their order.
_AGE_LEVELS = (0.0, 0.4, 1.0, 2.3, 3.2, 4.0, 6.0)


def doing_functions() -> Iterator[LabelingFunction]:
    """Make the functions on sport, activity, action, posture, speed and mood."""
    yield node_function("type of sport", _read_sport, family="sport", weight=8.0)
    yield node_function(
        "type of activity", _read_activity, floor=2.0, family="activity", weight=6.0
    )
    speeds = graded("still", "slow", "moderate", "fast")
    kinds = ("person", "people", 1.0), ("animal", "animals", 0.3), ("vehicle", "vehicles", 0.1)
    for doer, doers, weight in kinds:
        action = partial(_read_doing, tree="actions", doers=doers)
        posture = partial(_read_doing, tree="postures", doers=doers)
        speed = partial(_read_speed, doers=doers)
        yield node_function(f"action of {doer}", action, floor=2.0, weight=5 * weight)
        yield node_function(f"position of {doer}", posture, weight=2 * weight)
        yield built_in(f"speed of {doer}", speed, speeds, weight=weight)
    # Captions seldom mention moods.
    mood = partial(_read_doing, tree="moods", doers="people")
    yield node_function("mood of people", mood, family="mood", weight=0.0)


def people_functions() -> Iterator[LabelingFunction]:
    """Make the functions on number, gender, age, occupation and relations of people."""
    weights = {"person": 12.0, **dict.fromkeys("man woman child boy girl baby".split(), 0.5)}
    counters = [
        (noun, partial(read_count, tree="people", of=noun), weight)
        for noun, weight in weights.items()
    ]
    counters += [
        (noun, partial(_count_doing, activity=activity), 0.2)
        for noun, activity in names_by_word("functions", "doers").items()
    ]
    for noun, read, weight in counters:
        yield built_in(
            f"number of {plural(noun)}",
            read,
            compare_counts,
            say_count,
            family="number of people",
            weight=weight,
            absence_counts=noun == "person",
        )
    yield built_in("gender of person", _read_gender, _compare_genders, family="gender", weight=4.0)
    yield built_in("age of person", _read_ages, _compare_ages, _say_ages, family="age", weight=3.0)
    person = partial(read_nodes, tree="people", where="people")
    yield node_function("occupation of person", partial(person, of="role"), family="occupation")
    yield node_function("type of person", person)
    relation = partial(read_nodes, tree="relations", where="people")
    yield node_function("relationship between people", relation, family="relationship")


def place_functions() -> Iterator[LabelingFunction]:
    """Make the functions on place, room, surface, weather, time of day and other surroundings."""
    places, surfaces = partial(read_nodes, tree="places"), partial(read_nodes, tree="surfaces")
    yield node_function("location", places, floor=1.5, family="place", weight=6.0)
    yield built_in("whether it is indoors or outdoors", _read_indoors, family="place")
    yield node_function("type of room", _read_room, family="room", weight=4.0)
    yield node_function("type of surface", surfaces, family="surface", weight=2.0)
    yield node_function("weather", partial(read_nodes, tree="weather"))
    yield node_function("time of day", partial(read_nodes, tree="times"))
    # Two sentences seldom give the size of the same object.
    sizes = graded("tiny", "small", "medium", "large")
    yield built_in("size of object", _read_size, sizes, family="size", weight=0.0)
    materials = partial(read_nodes, tree="materials")
    yield node_function("material of object", materials, family="material")
    yield built_in("proximity to water", _read_water, family="presence")
    water = partial(read_nodes, tree="places", of="water place")
    yield node_function("type of water body", water, family="water body")


def _count_doing(sentence: Sentence, *, activity: str) -> Count | Absent | None:
    """Count people, if they do what makes them surfers, players and so on."""
    if not sentence.mentions("activities", of=activity):
        return None
    return read_count(sentence, tree="people", of="person")


def _read_gender(sentence: Sentence) -> str | Absent | None:
    genders = read_nodes(sentence, tree="gender", where="people")
    if not isinstance(genders, frozenset):
        return genders
    return "both" if len(genders) == 2 else next(iter(genders)).name


def _compare_genders(gender1: str, gender2: str) -> float:
    return 5.0 if gender1 == gender2 else 3.0 if "both" in (gender1, gender2) else 1.0


def _read_ages(sentence: Sentence) -> frozenset[int] | Absent | None:
    ages = frozenset(mention.node.order for mention in sentence.mentions("age"))
    return value_or_absent(ages, sentence, "people")


def _compare_ages(ages1: frozenset[int], ages2: frozenset[int]) -> float:
    def mean_gap(ages: frozenset[int], targets: frozenset[int]) -> float:
        gaps = [min(abs(_AGE_LEVELS[a] - _AGE_LEVELS[b]) for b in targets) for a in ages]
        return sum(gaps) / len(gaps)

    return max(1.0, 5.0 - 1.3 * (mean_gap(ages1, ages2) + mean_gap(ages2, ages1)) / 2)


def _say_ages(ages: frozenset[int]) -> str:
    return " and ".join(_AGES[age] for age in sorted(ages))


def _read_doing(sentence: Sentence, *, tree: str, doers: str) -> frozenset[Node] | Absent | None:
    """Read what follows the first mention of a doer, or the first thing done."""
    doer_mentions = sentence.mentions(doers)
    if not doer_mentions:
        return ABSENT
    mentions = [mention for mention in sentence.mentions(tree) if mention.node.parent]
    after = [m.node for m in mentions if m.start >= doer_mentions[0].start][:2]
    return frozenset(after or [mention.node for mention in mentions[:1]]) or None


def _read_sport(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes("activities", of="sport")
    return frozenset(node for node in nodes if node.name != "sport") or None if nodes else ABSENT


def _read_activity(sentence: Sentence) -> frozenset[Node] | None:
    """Read sports where there are any: "a surfer sits" is about surfing."""
    nodes = sentence.nodes("activities")
    return frozenset(node for node in nodes if node.within("sport")) or nodes or None


def _read_speed(sentence: Sentence, *, doers: str) -> str | Absent | None:
    if not sentence.mentions(doers):
        return ABSENT
    nodes = [mention.node for mention in sentence.mentions("speeds")]
    return max(nodes, key=lambda node: node.order).name if nodes else None


def _read_room(sentence: Sentence) -> frozenset[Node] | Absent | None:
    nodes = sentence.nodes("rooms")
    named = frozenset(node for node in nodes if node.name != "room")
    return named or (None if nodes or sentence.mentions("places", of="indoors") else ABSENT)


def _read_indoors(sentence: Sentence) -> str | None:
    sides = {node.path[1].name for node in sentence.nodes("places") if node.parent}
    return sides.pop() if len(sides) == 1 else None


def _read_size(sentence: Sentence) -> str | None:
    mentions = sentence.mentions("sizes")
    return mentions[0].node.name if mentions else None


def _read_water(sentence: Sentence) -> str:
    return "yes" if sentence.mentions("places", of="water place") else "no"
