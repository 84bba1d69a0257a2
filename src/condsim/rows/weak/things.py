"""Functions on things: number, kind, colour and presence of each noun of the trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from condsim.rows.weak.functions import (
    ABSENT,
    Absent,
    LabellingFunction,
    built_in,
    node_function,
    read_nodes,
)
from condsim.rows.weak.language import (
    Found,
    Node,
    Sentence,
    listed,
    names_by_word,
    plural,
    taxonomy,
)

_NUMBERS = {int(entry.name): entry.words for entry in listed("numbers", "exact")}
_EXACT = {word: number for number, words in _NUMBERS.items() for word in words}
_VAGUE = {word: int(name) for word, name in names_by_word("numbers", "vague").items()}
_COLLECTIVE = {word: int(name) for word, name in names_by_word("numbers", "collective").items()}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6}
_PLURAL = 3  # what a plural without a number is taken for


@dataclass(frozen=True)
class Count:
    """A number of things: an estimate, unless the sentence tells it."""

    number: float
    exact: bool

    @property
    def size(self) -> int:
        """Class of an estimate: 0 none, 1 one, 2 some, 3 many."""
        return sum(self.number >= least for least in (1, 1.5, 10))


def read_count(sentence: Sentence, *, tree: str, of: Node) -> Count | Absent | None:
    """Counts what a sentence mentions of a node; absent if it mentions nothing of the tree."""
    found = [hit for hit in sentence.mentions(tree, of=of) if not hit.hint]
    if found:
        return count(sentence, found)
    return None if sentence.mentions(tree) else ABSENT


def count(sentence: Sentence, found: Sequence[Found]) -> Count:
    """Counts things that a sentence mentions, at least one."""
    total, exact = 0.0, True
    single: set[Node] = set()
    many = False  # a plural came before: "two dogs, one of them black" counts them once
    for hit in found:
        if sentence.word(hit.stop) == "of" and any(0 < o.start - hit.stop <= 4 for o in found):
            continue  # "a group of people" is counted at the people
        if any(o.start == hit.stop for o in found):
            continue  # "a calico cat" is one
        one = _count_one(sentence, hit)
        before = sentence.before(hit)
        if one.number == 1:
            other = {"other", "one"} & {*before, sentence.word(hit.start - 1)}
            again = hit.node in single and before[-1:] in (("the",), ("his",), ("her",), ("that",))
            if again or (many and other):
                continue
            single.add(hit.node)
        elif hit.plural and many and "the" in before:
            continue
        many |= one.number > 1
        total += one.number
        exact &= one.exact
    if total == 1 and exact and _another(sentence):
        total = 2.0
    return Count(total, exact)


def compare_counts(one: Count, two: Count) -> float:
    """Compares two numbers."""
    low, high = sorted((one.number, two.number))
    if one.exact and two.exact:
        if low == high:
            return 5.0
        if low < 2:
            return 2.0 if (low, high) == (1, 2) else 1.0
        ratio = low / high
        return 4.0 if ratio > 0.9 else 3.0 if ratio > 0.6 else 2.0 if ratio >= 0.5 else 1.0
    if one.exact or two.exact:
        told, other = (one, two) if one.exact else (two, one)
        return 2.0 if other.size == 2 else 1.0 if told.number < 10 else 3.0
    if one.size != two.size:
        return 2.0
    return 4.0 if low == high else 3.0


def say_count(value: Count) -> str:
    """Says a number as a short answer."""
    if value.exact:
        number = int(value.number)
        return _NUMBERS.get(number, (str(number),))[0] if number else "none"
    return "many" if value.size == 3 else "several"


def _count_one(sentence: Sentence, hit: Found) -> Count:
    """Counts one mention: by the words before it, or "a group of" it."""
    before = sentence.before(hit)
    start = hit.start - len(before)
    noun = sentence.words[hit.stop - 1]
    if sentence.word(start - 1) == "of" and not {"the", "a", "an", "his", "her"} & {*before[:1]}:
        quantity = sentence.word(start - 2)
        if quantity in _EXACT and quantity not in ("a", "an", "one"):
            return Count(_EXACT[quantity], exact=True)
        if _number(before) is None and quantity in _VAGUE:
            large = "large" in sentence.words[max(0, start - 4) : start - 2]
            return Count(max(_VAGUE[quantity], 12.0 * large), exact=False)
    number = _number(before)
    if noun in _COLLECTIVE and (number is None or number == 1):
        return Count(_COLLECTIVE[noun], exact=_COLLECTIVE[noun] <= 3)
    if number is not None and (hit.plural or number <= 1 or plural(noun) == noun):
        return Count(number, exact=True)
    if hit.plural:
        vague = max((_VAGUE[word] for word in before if word in _VAGUE), default=0)
        return Count(vague or _PLURAL, exact=False)
    return Count(1, exact=True)


def _another(sentence: Sentence) -> bool:
    """Whether a second one is called "another" or "the other" alone: "as another looks on"."""
    return any(
        word in ("another", "other")
        and (following == "is" or bool(taxonomy("actions").find((following,))))
        for word, following in pairwise(sentence.words)
    )


def _number(before: Sequence[str]) -> float | None:
    """The number among the words before a noun."""
    scale = 1.0
    for word in reversed(before):
        digits = word.replace(",", "")  # "1,000"
        if digits.isdigit() and int(digits) > 0:
            return float(digits) * scale
        if word in _EXACT and word not in ("a", "an", "couple"):
            return float(_EXACT[word]) * scale
        scale *= _SCALES.get(word, 1.0)
    if {"a", "an"} & {*before} and not {"few", "couple", "lot", "bunch"} & {*before}:
        return scale
    return 2.0 if "couple" in before else None


_TREES = {
    "animals": "animal",
    "vehicles": "vehicle",
    "food": "food",
    "furniture": "furniture",
    "instruments": "instrument",
    "clothing": "clothing",
    "objects": "object",
}
_BROAD = frozenset(("objects", "food", "clothing", "furniture"))  # "number of objects" says little
_FEW = 0.05  # weight of a function for one word, where the frequency of conditions is not known
_NO_PLURAL = ("furniture", "clothing", "food")
_KINDS = (  # name, tree, node and weight
    ("type of dessert", "food", "sweet", 0.5),
    ("means of transport", "vehicles", "vehicle", 0.5),
    ("food items", "food", "food", 0.5),
    ("type of seating", "furniture", "seat", 0.5),
    ("objects nearby", "objects", "object", 0.5),
    ("object being held", "objects", "object", 0.0),  # what is held is not told apart
    ("animal being ridden", "animals", "animal", 0.0),
    ("clothing worn", "clothing", "clothing", 0.5),
)
_COLOURS = names_by_word("colours", "colours")
_NEAR_COLOURS = {
    frozenset((entry.name, other)) for entry in listed("colours", "near") for other in entry.words
}
_WEARS = frozenset("in wearing wears dressed clad".split())
_DETERMINERS = frozenset("a an any the other".split())
_LINKS = frozenset("is are was were".split())
_JOINS = frozenset(("and", ",", "&", "or"))


def thing_functions() -> Iterator[LabellingFunction]:
    """Gives those on no single noun."""
    yield built_in("color of clothing", _worn_colour, _compare_colours, _say_colours)
    yield built_in("color of object", _any_colour, _compare_colours, _say_colours)
    for name, tree, node, weight in _KINDS:
        yield _kind_function(name, tree, taxonomy(tree)[node], weight=weight)


def noun_functions() -> Iterator[LabellingFunction]:
    """Gives those on each noun of the trees."""
    for tree, family in _TREES.items():
        for node in taxonomy(tree).nodes.values():
            if node.parent is None:
                yield from _functions_of(tree, node, family)
            elif node.words:  # not a group that has no word of its own
                noun = node.name if node.name in node.words else node.words[0]
                yield from _functions_of(tree, node, noun)


def _functions_of(tree: str, node: Node, noun: str) -> Iterator[LabellingFunction]:
    family = _TREES[tree]
    many = noun if noun in _NO_PLURAL else plural(noun)
    others = node.words[1:]
    weight = _FEW if node.parent else 1.0
    told = node.parent is not None or tree not in _BROAD
    yield built_in(
        f"number of {many}",
        partial(read_count, tree=tree, of=node),
        compare_counts,
        say_count,
        family=f"number of {family}",
        also=[f"number of {plural(word)}" for word in others if word != noun],
        weight=weight if told else 0.0,
        none_is_a_value=True,
    )
    yield built_in(
        f"color of {noun}",
        partial(_colour, tree=tree, of=node),
        _compare_colours,
        _say_colours,
        family=f"color of {family}",
        also=[f"color of {word}" for word in others],
        weight=weight,
    )
    if node.children:
        also = [many, noun, *(f"type of {word}" for word in others)]
        yield _kind_function(f"type of {noun}", tree, node, also=also, weight=weight)
    yield built_in(
        f"presence of {noun}",
        partial(_presence, tree=tree, of=node),
        _compare_presence,
        family="presence",
        also=[noun, *(f"presence of {word}" for word in others)],
        weight=_FEW if told else 0.0,
    )


def _kind_function(
    name: str, tree: str, node: Node, *, also: Sequence[str] = (), weight: float
) -> LabellingFunction:
    return node_function(
        name,
        tree,
        partial(_kind, tree=tree, of=node),
        floor=2.0 if tree in _BROAD else 1.0,
        family=f"type of {_TREES[tree]}",
        also=also,
        weight=weight,
    )


def _kind(sentence: Sentence, *, tree: str, of: Node) -> frozenset[Node] | Absent | None:
    nodes = read_nodes(sentence, tree=tree, of=of.name, where=tree)
    return nodes - {of} or None if isinstance(nodes, frozenset) else nodes


def _presence(sentence: Sentence, *, tree: str, of: Node) -> str:
    for hit in sentence.mentions(tree, of=of):
        before = [word for word in sentence.before(hit) if word not in _DETERMINERS]
        if before[-1:] not in (["no"], ["without"]):  # "without any other dog"
            return "yes"
    return "no"


def _compare_presence(one: str, two: str) -> float | None:
    """Two sentences without it tell nothing: captions do not say what there is not."""
    return None if one == two == "no" else 5.0 if one == two else 1.0


def _colour(sentence: Sentence, *, tree: str, of: Node) -> frozenset[str] | Absent | None:
    found = [hit for hit in sentence.mentions(tree, of=of) if not hit.hint]
    if found:
        return _colours_of(sentence, found) or None
    return None if sentence.mentions(tree) else ABSENT


def _worn_colour(sentence: Sentence) -> frozenset[str] | Absent | None:
    found = sentence.mentions("clothing")
    colours = _colours_of(sentence, found) | _worn_colours(sentence)
    if colours:
        return colours
    return None if found or sentence.mentions("people") else ABSENT


def _any_colour(sentence: Sentence) -> frozenset[str] | None:
    return frozenset(_COLOURS[word] for word in sentence.words if word in _COLOURS) or None


def _say_colours(colours: frozenset[str]) -> str:
    return " and ".join(sorted(colours))


def _colours_of(sentence: Sentence, found: Sequence[Found]) -> frozenset[str]:
    """Reads the colours of things that a sentence mentions."""
    colours: set[str] = set()
    for hit in found:
        before = sentence.before(hit)
        for at in range(hit.start - 1, max(hit.start - 9, -1), -1):
            word = sentence.words[at]
            joined = word in _JOINS and sentence.word(at - 1) in _COLOURS
            if word in _COLOURS:
                colours.add(_COLOURS[word])
            elif not joined and word not in before:
                break
        if sentence.word(hit.stop) in _LINKS and sentence.word(hit.stop + 1) in _COLOURS:
            colours.add(_COLOURS[sentence.word(hit.stop + 1)])
    return frozenset(colours)


def _worn_colours(sentence: Sentence) -> frozenset[str]:
    """Reads what is worn from "a man in red" and "dressed in black and white"."""
    colours: set[str] = set()
    for at, word in enumerate(sentence.words):
        for place, following in enumerate(sentence.words[at + 1 :] if word in _WEARS else ()):
            if following in _COLOURS:
                colours.add(_COLOURS[following])
            elif following not in ("all", "a") and not (place and following in _JOINS):
                break
    return frozenset(colours)


def _compare_colours(one: frozenset[str], two: frozenset[str]) -> float:
    """Compares two sets of colours."""
    if one == two:
        return 5.0
    shared = len(one & two) / len(one | two)
    if shared:
        return 4.0 if shared >= 0.5 else 3.0
    near = any(frozenset((a, b)) in _NEAR_COLOURS for a in one for b in two)
    return 2.0 if near else 1.0
