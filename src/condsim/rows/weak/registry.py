"""Labelling functions by name and by condition: the built-in ones, and those of the user."""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from condsim.errors import CondSimError, InputError
from condsim.evaluation.correlation import spearman
from condsim.rows.weak.functions import (
    ABSENT,
    Comparison,
    LabellingFunction,
    Reader,
    condition_key,
    wordings_of,
    yes_or_no,
)
from condsim.rows.weak.language import Sentence, cut_sentence
from condsim.rows.weak.scenes import doing_functions, people_functions, place_functions
from condsim.rows.weak.texts import function_by_form, installed, text_functions
from condsim.rows.weak.things import noun_functions, thing_functions
from condsim.types import Task

ReaderT = TypeVar("ReaderT", bound=Reader)


class Registry:
    """Labelling functions by name, and by the conditions they understand."""

    def __init__(self, functions: Iterable[LabellingFunction] = ()) -> None:
        self._functions: dict[str, LabellingFunction] = {}
        self._keys: dict[frozenset[str], LabellingFunction] = {}
        # Makes a function for a condition that no function has for its own.
        self.otherwise: Callable[[str], LabellingFunction | None] = lambda condition: None
        for function in functions:
            self.add(function)

    def __iter__(self) -> Iterator[LabellingFunction]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: LabellingFunction) -> None:
        """Adds a function; a condition in ``also`` stays with one that understands it already."""
        if function.name in self._functions:
            raise InputError(
                f"Each labelling function must have a name of its own, and there is one called "
                f"{function.name!r} already. Give another name."
            )
        self._functions[function.name] = function
        for condition in (function.name, *function.wordings):
            self._keys[condition_key(condition)] = function
        for condition in function.also:
            self._keys.setdefault(condition_key(condition), function)

    def find(self, condition: str) -> LabellingFunction | None:
        """Finds the function that understands a condition."""
        found = self._keys.get(condition_key(condition))
        return self.otherwise(condition) if found is None else found


def _built_in() -> Registry:
    """A registry with every function that comes with condsim."""
    registry = Registry([*doing_functions(), *thing_functions()])
    for function in noun_functions():
        if registry.find(function.name) is None:  # "type of boat" is understood already
            registry.add(function)
    for function in (*people_functions(), *place_functions()):
        registry.add(function)
    if installed():
        for function in text_functions().values():
            registry.add(function)
        registry.otherwise = function_by_form
    return registry


REGISTRY = _built_in()
"""The functions that come with condsim, and those of the user."""


def labelling_function(
    name: str,
    *,
    compare: Comparison = yes_or_no,
    family: str = "own",
    answer: Callable[[Any], str] = str,
    wordings: Sequence[str] = (),
    also: Sequence[str] = (),
    weight: float = 1.0,
    none_is_a_value: bool = False,
    registry: Registry = REGISTRY,
) -> Callable[[ReaderT], ReaderT]:
    """Registers a function that reads an attribute from a sentence; a decorator.

    It gives the value, None where it does not understand the sentence, or `ABSENT` where there is
    nothing that the condition could be about.

    Args:
        name: The condition in plain words, such as ``"severity of the incident"``; unique.
        compare: Takes two values and gives a label from 1 (entirely different) to 5 (the same), or
            None where it cannot tell.
        family: Group that reports count it in.
        answer: Says a value in a few words.
        wordings: Ways to write the condition besides those that are made from the name.
        also: Further conditions it understands, which are never written.
        weight: How often it is drawn, relative to others, at least 0.
        none_is_a_value: Whether a sentence without the attribute says something ("no people"), so
            that only two such sentences make the condition void.
        registry: Where it is registered.

    Raises:
        InputError: If the name is taken or no condition, or the weight is below 0.

    Example:
        >>> mine = Registry()
        >>> @labelling_function("presence of water", registry=mine)
        ... def water(sentence):
        ...     return "yes" if "water" in sentence.words else None
        >>> mine.find("The presence of water.").name
        'presence of water'
    """
    if not condition_key(name):
        raise InputError(f"The name of a labelling function must be a condition. Got {name!r}.")
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"{name}: the weight must be at least 0. Got {weight}.")

    def register(read: ReaderT) -> ReaderT:
        registry.add(
            LabellingFunction(
                name=name,
                family=family,
                read=_guarded(name, read),
                compare=_guarded(name, compare),
                answer=_guarded(name, answer),
                wordings=wordings_of(name, tuple(wordings)),
                also=tuple(also),
                weight=weight,
                none_is_a_value=none_is_a_value,
            )
        )
        return read

    return register


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function so that its errors are one line."""

    @functools.wraps(function)
    def guarded(*values: object) -> Any:  # noqa: ANN401  (what the function returns)
        try:
            return function(*values)
        except CondSimError:
            raise
        except Exception as error:
            given = ", ".join(repr(getattr(value, "text", value)) for value in values)
            raise InputError(
                f"The labelling function {name!r} raised {type(error).__name__}: {error}, for "
                f"{given}. It must return None where it cannot tell."
            ) from error

    return guarded


_FEWEST = 3  # rows for a correlation


@dataclass(frozen=True)
class Agreement:
    """Agreement on the rows whose conditions some functions understand."""

    name: str  # of the function or family, or "all"
    rows: int
    read: int  # rows of which both sentences are read
    spearman: float  # x100, of score and label; NaN below three rows or where either is constant
    mean_absolute_error: float  # in labels; NaN if no row is read


@dataclass(frozen=True)
class AgreementReport:
    """Agreement with a labelled data set."""

    rows: int  # labelled rows
    understood: float  # share in [0, 1] of them whose condition a function understands
    all: Agreement  # over all functions
    families: tuple[Agreement, ...]  # by family, the most rows first
    functions: tuple[Agreement, ...]  # by function, the most rows first
    # The most frequent conditions that no function understands, with their rows.
    not_understood: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Coverage:
    """How many sentences a function reads."""

    name: str
    family: str
    read: float  # share in [0, 1] of the sentences in which it reads a value
    absent: float  # share in which it says that the attribute is absent


def agreement(task: Task, registry: Registry, *, shown: int = 20) -> AgreementReport:
    """Compares the functions with labels that were given.

    Args:
        task: Rows with conditions and labels from 1 to 5, such as C-STS.
        shown: Conditions that are not understood to list, at most.

    Returns:
        The report; rows without a label are left out.
    """
    by_function = defaultdict[str, _Rows](list)
    by_family = defaultdict[str, _Rows](list)
    missed: Counter[str] = Counter()
    rows = zip(task.sentences1, task.sentences2, task.conditions or (), task.labels, strict=True)
    for one, two, condition, label in rows:
        function = registry.find(condition)
        if math.isnan(label):
            continue
        if function is None:
            missed[condition.lower().strip(" .")] += 1
            continue
        score = function.score(cut_sentence(one), cut_sentence(two))
        row = math.nan if score is None else score, float(label)
        by_function[function.name].append(row)
        by_family[function.family].append(row)
    understood = [row for found in by_function.values() for row in found]
    labelled = len(understood) + missed.total()
    return AgreementReport(
        rows=labelled,
        understood=len(understood) / max(labelled, 1),
        all=_agreement("all", understood),
        families=_agreements(by_family),
        functions=_agreements(by_function),
        not_understood=tuple(missed.most_common(shown)),
    )


_Rows = list[tuple[float, float]]
"""Scores, NaN where not both sentences are read, and labels."""


def _agreements(groups: Mapping[str, _Rows]) -> tuple[Agreement, ...]:
    found = (_agreement(name, rows) for name, rows in groups.items())
    return tuple(sorted(found, key=lambda one: (-one.rows, one.name)))


def _agreement(name: str, rows: _Rows) -> Agreement:
    read = np.array([row for row in rows if not math.isnan(row[0])]).reshape(-1, 2)
    varied = len(read) >= _FEWEST and bool((np.ptp(read, axis=0) > 0).all())
    error = float(np.abs(read[:, 0] - read[:, 1]).mean()) if len(read) else math.nan
    return Agreement(
        name=name,
        rows=len(rows),
        read=len(read),
        spearman=100 * spearman(read[:, 0], read[:, 1]) if varied else math.nan,
        mean_absolute_error=error,
    )


def coverage(sentences: Sequence[str], registry: Registry) -> tuple[Coverage, ...]:
    """Counts what the functions read.

    Args:
        sentences: Any number, at least one.

    Returns:
        A row a function; those that read the most come first.
    """
    read: Counter[str] = Counter()
    absent: Counter[str] = Counter()
    for text in sentences:
        sentence = Sentence(text)
        for function in registry:
            value = function.read(sentence)
            absent[function.name] += value is ABSENT
            read[function.name] += value is not None and value is not ABSENT
    total = max(len(sentences), 1)
    found = [
        Coverage(f.name, f.family, read[f.name] / total, absent[f.name] / total) for f in registry
    ]
    return tuple(sorted(found, key=lambda one: (-one.read, one.name)))
