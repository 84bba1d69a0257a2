"""Labelling functions: each reads one attribute from a sentence and compares two values of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Set
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache, partial
from typing import Any, Literal, TypeAlias

from condsim.errors import InputError
from condsim.rows.weak.language import (
    Node,
    Sentence,
    Taxonomy,
    all_words,
    listed,
    names_by_word,
    taxonomy,
)

_HEADS = {entry.name: entry.words[1:] for entry in listed("conditions", "heads")}
_SAME = names_by_word("conditions", "same")
_SINGULAR = names_by_word("conditions", "singular")
_KEPT = all_words("conditions", "kept")
_EMPTY = all_words("conditions", "empty")


def wordings_of(name: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Gives ways to write a condition."""
    head, _, rest = name.partition(" of ")
    made = [template.format(x=rest) for template in _HEADS.get(head, ()) if rest]
    return tuple(dict.fromkeys(way for text in (name, *made, *extra) for way in _ways(text)))


def _ways(text: str) -> Iterator[str]:
    """A wording as it is, and as a sentence."""
    yield text
    capital = text[0].upper() + text[1:]
    if text.endswith("?"):
        yield capital
    elif text.split(" ")[0] in ("how", "what", "where", "which", "whether", "the"):
        yield f"{capital}."
    else:
        yield f"The {text}."
        yield f"the {text}"
        yield f"{capital}."


@cache
def built_in_conditions() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Gives the further wordings of the built-in functions, and what else they understand."""
    lists = {entry.name: entry.words for entry in listed("functions", "lists")}

    def expanded(text: str) -> Iterator[str]:
        head, brace, name = text.partition("{")
        yield from (head + word for word in (lists[name.rstrip("}")] if brace else ("",)))

    return {
        entry.name: (entry.words[1:], tuple(one for text in entry.hints for one in expanded(text)))
        for entry in listed("functions", "conditions")
    }


@lru_cache(maxsize=512)
def condition_key(condition: str) -> frozenset[str]:
    """Gives the words of a condition that carry its meaning.

    Example:
        >>> condition_key("The number of people.") == condition_key("How many persons there are")
        True
    """
    words = re.findall(r"[a-z0-9]+", condition.lower())
    return frozenset(_meaning(word) for word in words if word not in _EMPTY)


def _meaning(word: str) -> str:
    word = _SAME.get(word, word)
    if word in _SINGULAR:
        word = _SINGULAR[word]
    elif word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes", "oes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3 and word not in _KEPT:
        word = word[:-1]
    return _SAME.get(word, word)


LOWEST, HIGHEST = 1.0, 5.0


class Absent(Enum):
    """What a function returns where the sentence has nothing the condition could be about."""

    ABSENT = "absent"


ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT

Reader: TypeAlias = Callable[[Sentence], Any]
"""Gives the value; None if it is not understood; `ABSENT` if the attribute is absent."""

Comparison: TypeAlias = Callable[[Any, Any], float | None]
"""Gives two values a label from 1 (entirely different) to 5 (the same); None if it cannot tell."""


@dataclass(frozen=True)
class LabellingFunction:
    """Reads one attribute and compares two values of it; see `labelling_function`."""

    name: str
    family: str
    read: Reader
    compare: Comparison
    answer: Callable[[Any], str]
    wordings: tuple[str, ...]  # the name first
    also: tuple[str, ...] = ()
    weight: float = 1.0
    none_is_a_value: bool = False

    def score(self, sentence1: Sentence, sentence2: Sentence) -> float | None:
        """Compares two sentences."""
        return self.score_values(self.read(sentence1), self.read(sentence2))

    def score_values(self, one: Any, two: Any) -> float | None:  # noqa: ANN401  (any value)
        """Compares what was read from two sentences."""
        if one is None or two is None:
            return None
        absent = (one is ABSENT) + (two is ABSENT)
        if absent:
            return LOWEST if absent == 1 and self.none_is_a_value else None
        label = self.compare(one, two)
        if label is not None and not LOWEST <= label <= HIGHEST:
            raise InputError(
                f"The labelling function {self.name!r} gave {one!r} and {two!r} the label {label}. "
                "Labels are from 1 to 5, or None where it cannot tell."
            )
        return label

    def say(self, value: Any) -> str:  # noqa: ANN401  (any value)
        """Says what was read."""
        if value is ABSENT:
            return "none" if self.none_is_a_value else ""
        return "" if value is None else self.answer(value)

    def void(self, one: Any, two: Any) -> bool:  # noqa: ANN401  (any value)
        """Whether the condition applies to neither sentence, or to only one."""
        if one is None or two is None or self.none_is_a_value:
            return one is ABSENT and two is ABSENT
        return one is ABSENT or two is ABSENT


def yes_or_no(one: Hashable, two: Hashable) -> float:
    """Compares values that are equal or not."""
    return HIGHEST if one == two else LOWEST


def built_in(
    name: str,
    read: Reader,
    compare: Comparison = yes_or_no,
    answer: Callable[[Any], str] = str,
    *,
    family: str = "",
    also: Iterable[str] = (),
    weight: float = 1.0,
    none_is_a_value: bool = False,
) -> LabellingFunction:
    """Makes a function that comes with condsim; ``lists/functions.txt`` has its wordings."""
    wordings, understood = built_in_conditions().get(name, ((), ()))
    return LabellingFunction(
        name=name,
        family=family or name,
        read=read,
        compare=compare,
        answer=answer,
        wordings=wordings_of(name, wordings),
        also=(*understood, *also),
        weight=weight,
        none_is_a_value=none_is_a_value,
    )


def node_function(
    name: str,
    tree: str,
    read: Reader | None = None,
    *,
    floor: float = LOWEST,
    family: str = "",
    also: Iterable[str] = (),
    weight: float = 1.0,
) -> LabellingFunction:
    """Makes a built-in function that reads nodes of a tree; labels are from ``floor`` to 5."""
    # Each node is held against the most similar one of the other sentence; labels are the mean
    # over both directions.

    def compare(one: Set[Node], two: Set[Node]) -> float:
        known = taxonomy(tree)
        alike = (_best(known, one, two) + _best(known, two, one)) / 2
        return floor + (alike - LOWEST) * (HIGHEST - floor) / (HIGHEST - LOWEST)

    read = read or partial(read_nodes, tree=tree)
    return built_in(name, read, compare, _say_nodes, family=family, also=also, weight=weight)


def _best(tree: Taxonomy, some: Set[Node], others: Set[Node]) -> float:
    return sum(max(tree.similarity(one, two) for two in others) for one in some) / len(some)


def _say_nodes(nodes: Set[Node]) -> str:
    names = [node.name for node in sorted(nodes, key=lambda node: node.order)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def read_nodes(
    sentence: Sentence, *, tree: str, of: str | None = None, where: str | None = None
) -> frozenset[Node] | Absent | None:
    """Reads what a sentence mentions of a tree, or below a node; ABSENT if nothing of ``where``."""
    nodes = sentence.nodes(tree, of=None if of is None else taxonomy(tree)[of])
    if nodes:
        return nodes
    return None if where is None or sentence.mentions(where) else ABSENT


def graded(*values: str) -> Callable[[str, str], float]:
    """Makes a comparison of values that have an order.

    Example:
        >>> graded("none", "mild", "severe")("mild", "severe")
        3.0
    """
    if len(values) < 2 or len(set(values)) < len(values):
        raise InputError(f"An order needs two values or more, each once. Got {list(values)!r}.")
    place = {value: number for number, value in enumerate(values)}

    def compare(one: str, two: str) -> float:
        apart = abs(place[one] - place[two]) / (len(values) - 1)
        return HIGHEST - apart * (HIGHEST - LOWEST)

    return compare
