"""Labeling functions by name and by condition, built in or the user's, and how well they label."""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from condsim.errors import CondSimError, InputError
from condsim.evaluation.statistics import spearman
from condsim.types import Task
from condsim_annotation.weak.captions import (
    doing_functions,
    noun_functions,
    people_functions,
    place_functions,
    thing_functions,
)
from condsim_annotation.weak.functions import (
    ABSENT,
    Comparison,
    LabelingFunction,
    Reader,
    condition_key,
    wordings_of,
    yes_or_no,
)
from condsim_annotation.weak.language import Sentence, cut_sentence
from condsim_annotation.weak.texts import function_by_form, text_functions

ReaderT = TypeVar("ReaderT", bound=Reader)

_MIN_ROWS_OF_CORRELATION = 3
_CONDITIONS_LISTED = 20


class Registry:
    """Labeling functions by name, and by the conditions they understand.

    The ``fallback`` makes a function for a condition that no function has as its own.
    """

    def __init__(
        self,
        functions: Iterable[LabelingFunction] = (),
        *,
        fallback: Callable[[str], LabelingFunction | None] = lambda condition: None,
    ) -> None:
        self._functions: dict[str, LabelingFunction] = {}
        self._keys: dict[frozenset[str], LabelingFunction] = {}
        self._fallback = fallback
        for function in functions:
            self.add(function)

    def __iter__(self) -> Iterator[LabelingFunction]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: LabelingFunction) -> None:
        """Add a function; its aliases stay with a function that already understands them."""
        if function.name in self._functions:
            raise InputError(
                f"The name of a labeling function must be unique, and there is one called "
                f"{function.name!r} already."
            )
        self._functions[function.name] = function
        for condition in function.wordings:
            self._keys[condition_key(condition)] = function
        for condition in function.aliases:
            self._keys.setdefault(condition_key(condition), function)

    def find(self, condition: str) -> LabelingFunction | None:
        """Find the function that understands a condition."""
        function = self._keys.get(condition_key(condition))
        return self._fallback(condition) if function is None else function


def _built_in_registry() -> Registry:
    captions = Registry([*doing_functions(), *thing_functions()])
    for function in noun_functions():
        # "type of boat" is understood already.
        if captions.find(function.name) is None:
            captions.add(function)
    everything = [*captions, *people_functions(), *place_functions()]
    return Registry([*everything, *text_functions().values()], fallback=function_by_form)


REGISTRY = _built_in_registry()
"""The functions of condsim and of the user."""


def labeling_function(
    name: str,
    *,
    compare: Comparison = yes_or_no,
    family: str = "own",
    answer: Callable[[Any], str] = str,
    wordings: Sequence[str] = (),
    aliases: Sequence[str] = (),
    weight: float = 1.0,
    absence_counts: bool = False,
    registry: Registry = REGISTRY,
) -> Callable[[ReaderT], ReaderT]:
    """Register a function that reads an attribute from a sentence; a decorator.

    The function returns the value, None where it does not understand the sentence, or `ABSENT`
    where there is nothing that the condition could be about.

    Args:
        name: The condition in plain words, such as ``"severity of the incident"``; unique.
        compare: Takes two values and returns a label from 1 (entirely different) to 5 (the same),
            or None where it cannot tell.
        family: Group that reports count it in.
        answer: Writes a value in a few words.
        wordings: Ways to write the condition in addition to those derived from the name.
        aliases: Further conditions it understands, which are never written.
        weight: Relative frequency of its rows, at least 0.
        absence_counts: Whether a sentence without the attribute has a value ("no people"), so that
            only two such sentences make the condition inapplicable.
        registry: Where it is registered.

    Raises:
        InputError: If the name is taken or not a condition, or the weight is below 0.

    Example:
        >>> mine = Registry()
        >>> @labeling_function("presence of water", registry=mine)
        ... def water(sentence):
        ...     return "yes" if "water" in sentence.words else None
        >>> mine.find("The presence of water.").name
        'presence of water'
    """
    if not condition_key(name):
        raise InputError(f"The name of a labeling function must be a condition, got {name!r}.")
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"{name}: the weight must be at least 0, got {weight}.")

    def register(read: ReaderT) -> ReaderT:
        registry.add(
            LabelingFunction(
                name=name,
                family=family,
                read=_name_in_errors(name, read),
                compare=_name_in_errors(name, compare),
                answer=_name_in_errors(name, answer),
                wordings=wordings_of(name, wordings),
                aliases=tuple(aliases),
                weight=weight,
                absence_counts=absence_counts,
            )
        )
        return read

    return register


def _name_in_errors(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its errors are one line."""

    @functools.wraps(function)
    def guarded(*values: object) -> Any:  # noqa: ANN401
        try:
            return function(*values)
        except CondSimError:
            raise
        except Exception as error:
            inputs = ", ".join(repr(getattr(value, "text", value)) for value in values)
            raise InputError(
                f"The labeling function {name!r} raised {type(error).__name__}: {error}, for "
                f"{inputs}; it must return None where it cannot tell."
            ) from error

    return guarded


@dataclass(frozen=True)
class FunctionAgreement:
    """Agreement on the rows whose conditions a function, a family or "all" understand.

    Of ``read`` rows both sentences are read. The Spearman correlation of score and label is x100;
    NaN below three rows or where either is constant. The error is in labels; NaN if no row is read.
    """

    name: str
    rows: int
    read: int
    spearman: float
    mean_absolute_error: float


@dataclass(frozen=True)
class AgreementReport:
    """Agreement with a labeled data set; families, functions and conditions by number of rows.

    A share in [0, 1] of the labeled rows has a condition that a function understands.
    """

    rows: int
    understood: float
    all: FunctionAgreement
    families: tuple[FunctionAgreement, ...]
    functions: tuple[FunctionAgreement, ...]
    not_understood: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Coverage:
    """Shares in [0, 1] of sentences that a function reads, and that lack the attribute."""

    name: str
    family: str
    read: float
    absent: float


def function_agreement(task: Task, registry: Registry) -> AgreementReport:
    """Compare the functions with the labels of a task, from 1 to 5, where there are any."""
    # Scores, NaN where not both sentences are read, and labels.
    by_function = defaultdict[str, list[tuple[float, float]]](list)
    by_family = defaultdict[str, list[tuple[float, float]]](list)
    missed: Counter[str] = Counter()
    labels = 1 + 4 * task.gold
    rows = zip(task.sentences1, task.sentences2, task.conditions or (), labels, strict=True)
    for sentence1, sentence2, condition, label in rows:
        if math.isnan(label):
            continue
        function = registry.find(condition)
        if function is None:
            missed[condition.lower().strip(" .")] += 1
            continue
        score = function.score(cut_sentence(sentence1), cut_sentence(sentence2))
        row = math.nan if score is None else score, float(label)
        by_function[function.name].append(row)
        by_family[function.family].append(row)
    understood = [row for group in by_function.values() for row in group]
    labeled = len(understood) + missed.total()
    return AgreementReport(
        rows=labeled,
        understood=len(understood) / max(labeled, 1),
        all=_agreement_on("all", understood),
        families=_agreements_by_group(by_family),
        functions=_agreements_by_group(by_function),
        not_understood=tuple(missed.most_common(_CONDITIONS_LISTED)),
    )


def _agreements_by_group(
    groups: Mapping[str, Iterable[tuple[float, float]]],
) -> tuple[FunctionAgreement, ...]:
    agreements = (_agreement_on(name, rows) for name, rows in groups.items())
    return tuple(sorted(agreements, key=lambda group: (-group.rows, group.name)))


def _agreement_on(name: str, rows: Iterable[tuple[float, float]]) -> FunctionAgreement:
    scored = np.array([*rows]).reshape(-1, 2)
    read = scored[~np.isnan(scored[:, 0])]
    varies = len(read) >= _MIN_ROWS_OF_CORRELATION and bool((np.ptp(read, axis=0) > 0).all())
    correlation = 100 * spearman(read[:, 0], read[:, 1]) if varies else math.nan
    error = float(np.abs(read[:, 0] - read[:, 1]).mean()) if len(read) else math.nan
    return FunctionAgreement(name, len(scored), len(read), correlation, error)


def coverage(sentences: Sequence[str], registry: Registry) -> tuple[Coverage, ...]:
    """Count the sentences that each function reads, the most first."""
    read: Counter[str] = Counter()
    absent: Counter[str] = Counter()
    for text in sentences:
        sentence = Sentence(text)
        for function in registry:
            value = function.read(sentence)
            absent[function.name] += value is ABSENT
            read[function.name] += value is not None and value is not ABSENT
    total = max(len(sentences), 1)
    shares = [
        Coverage(f.name, f.family, read[f.name] / total, absent[f.name] / total) for f in registry
    ]
    return tuple(sorted(shares, key=lambda share: (-share.read, share.name)))
