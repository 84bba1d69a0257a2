"""Labeling functions: each reads one attribute from a sentence and compares two values of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias, TypeVar

from condsim.errors import InputError
from condsim_annotation.weak.language import (
    Node,
    Sentence,
    all_words,
    listed,
    names_by_word,
    node_similarity,
)

ValueT = TypeVar("ValueT")

LOWEST, HIGHEST = 1.0, 5.0
_HEADS = {entry.name: entry.words[1:] for entry in listed("conditions", "heads")}
_SAME = names_by_word("conditions", "same")
_SINGULAR = names_by_word("conditions", "singular")
_UNCHANGED = all_words("conditions", "kept")
_EMPTY = all_words("conditions", "empty")
_CLAUSE_WORDS = ("how", "what", "where", "which", "whether", "the")


def wordings_of(name: str, extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Return ways to write a condition, its name first."""
    head, _, rest = name.partition(" of ")
    derived = [template.format(x=rest) for template in _HEADS.get(head, ()) if rest]
    return tuple(dict.fromkeys(way for text in (name, *derived, *extra) for way in _ways(text)))


def _ways(text: str) -> Iterator[str]:
    """Return a wording unchanged and as a sentence."""
    yield text
    capital = text[0].upper() + text[1:]
    if text.endswith("?"):
        yield capital
    elif text.split(" ")[0] in _CLAUSE_WORDS:
        yield f"{capital}."
    else:
        yield from (f"The {text}.", f"the {text}", f"{capital}.")


@cache
def _built_in_conditions() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the further wordings of the built-in functions, and the aliases of each."""
    lists = {entry.name: entry.words for entry in listed("functions", "lists")}
    conditions = {}
    for entry in listed("functions", "conditions"):
        aliases: list[str] = []
        for text in entry.hints:
            head, brace, name = text.partition("{")
            aliases += [head + word for word in (lists[name.rstrip("}")] if brace else ("",))]
        conditions[entry.name] = entry.words[1:], tuple(aliases)
    return conditions


@lru_cache(maxsize=512)
def condition_key(condition: str) -> frozenset[str]:
    """Return the words of a condition that carry its meaning."""
    words = re.findall(r"[a-z0-9]+", condition.lower())
    return frozenset(_meaning(word) for word in words if word not in _EMPTY)


def _meaning(word: str) -> str:
    """Return the singular of a word, or the word that stands for its meaning."""
    word = _SAME.get(word, word)
    if word in _SINGULAR:
        word = _SINGULAR[word]
    elif word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes", "oes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word if word in _UNCHANGED else word[:-1]
    return _SAME.get(word, word)


class Absent(Enum):
    """Marker for a sentence that has nothing the condition could be about."""

    ABSENT = "absent"


ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT

Reader: TypeAlias = Callable[[Sentence], Any]
"""Returns the value; None if it is not understood; `ABSENT` if the attribute is absent."""

Comparison: TypeAlias = Callable[[Any, Any], float | None]
"""Returns a label of two values from 1 (entirely different) to 5 (the same); None if unknown."""


@dataclass(frozen=True)
class LabelingFunction:
    """Reader of one attribute with a comparison of its values; see `labeling_function`."""

    name: str
    family: str
    read: Reader
    compare: Comparison
    answer: Callable[[Any], str]
    wordings: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    weight: float = 1.0
    absence_counts: bool = False

    def score(self, sentence1: Sentence, sentence2: Sentence) -> float | None:
        """Compare two sentences."""
        return self.score_values(self.read(sentence1), self.read(sentence2))

    def score_values(self, value1: Any, value2: Any) -> float | None:  # noqa: ANN401
        """Compare the values of two sentences."""
        if value1 is None or value2 is None:
            return None
        absent = (value1 is ABSENT) + (value2 is ABSENT)
        if absent:
            return LOWEST if absent == 1 and self.absence_counts else None
        label = self.compare(value1, value2)
        if label is not None and not LOWEST <= label <= HIGHEST:
            raise InputError(
                f"The labeling function {self.name!r} must give a label from 1 to 5, or None; "
                f"got {label} for {value1!r} and {value2!r}."
            )
        return label

    def say(self, value: Any) -> str:  # noqa: ANN401
        """Write a value in a few words, empty if there is none."""
        if value is ABSENT:
            return "none" if self.absence_counts else ""
        return "" if value is None else self.answer(value)

    def is_inapplicable(self, value1: Any, value2: Any) -> bool:  # noqa: ANN401
        """Return whether the condition applies to neither sentence, or to only one."""
        if value1 is None or value2 is None or self.absence_counts:
            return value1 is ABSENT and value2 is ABSENT
        return value1 is ABSENT or value2 is ABSENT


def yes_or_no(value1: object, value2: object) -> float:
    """Compare values that are equal or not."""
    return HIGHEST if value1 == value2 else LOWEST


def graded(*values: str) -> Callable[[str, str], float]:
    """Return a comparison of values that have an order.

    Example:
        >>> graded("none", "mild", "severe")("mild", "severe")
        3.0
    """
    if len(values) < 2 or len(set(values)) < len(values):
        raise InputError(f"An order needs two values or more, each once; got {list(values)!r}.")

    def compare(value1: str, value2: str) -> float:
        steps = abs(values.index(value1) - values.index(value2))
        return HIGHEST - steps / (len(values) - 1) * (HIGHEST - LOWEST)

    return compare


def built_in(
    name: str,
    read: Reader,
    compare: Comparison = yes_or_no,
    answer: Callable[[Any], str] = str,
    *,
    family: str = "",
    aliases: Iterable[str] = (),
    weight: float = 1.0,
    absence_counts: bool = False,
) -> LabelingFunction:
    """Make a function of condsim; ``lists/functions.txt`` has its wordings."""
    wordings, listed_aliases = _built_in_conditions().get(name, ((), ()))
    wordings, aliases = wordings_of(name, wordings), (*listed_aliases, *aliases)
    return LabelingFunction(
        name, family or name, read, compare, answer, wordings, aliases, weight, absence_counts
    )


def node_function(
    name: str,
    read: Reader,
    *,
    floor: float = LOWEST,
    family: str = "",
    aliases: Iterable[str] = (),
    weight: float = 1.0,
) -> LabelingFunction:
    """Make a built-in function that reads nodes of a tree; labels are from ``floor`` to 5.

    Each node is compared with the most similar one of the other sentence, in both directions.
    """

    def compare(nodes1: Set[Node], nodes2: Set[Node]) -> float:
        mean = (_mean_best_similarity(nodes1, nodes2) + _mean_best_similarity(nodes2, nodes1)) / 2
        return floor + (mean - LOWEST) * (HIGHEST - floor) / (HIGHEST - LOWEST)

    return built_in(name, read, compare, _say_nodes, family=family, aliases=aliases, weight=weight)


def _mean_best_similarity(nodes: Set[Node], candidates: Set[Node]) -> float:
    return sum(max(node_similarity(n, c) for c in candidates) for n in nodes) / len(nodes)


def _say_nodes(nodes: Set[Node]) -> str:
    names = [node.name for node in sorted(nodes, key=lambda node: node.order)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def read_nodes(
    sentence: Sentence, *, tree: str, of: str | None = None, where: str = ""
) -> frozenset[Node] | Absent | None:
    """Read the mentions of a tree, or below a node; ABSENT if the tree ``where`` has none."""
    nodes = sentence.nodes(tree, of=of) or None
    return value_or_absent(nodes, sentence, where) if where else nodes


def value_or_absent(value: ValueT | None, sentence: Sentence, tree: str) -> ValueT | Absent | None:
    """Return a value, or ABSENT if the sentence mentions nothing of a tree."""
    return value or (None if sentence.mentions(tree) else ABSENT)
