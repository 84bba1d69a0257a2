"""Labelling functions by name and by condition: the built-in ones, and those of the user."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from condsim.errors import CondSimError, InputError
from condsim.rows.weak.functions import (
    Comparison,
    LabellingFunction,
    Reader,
    condition_key,
    wordings_of,
    yes_or_no,
)
from condsim.rows.weak.scenes import doing_functions, people_functions, place_functions
from condsim.rows.weak.texts import can_read_texts, function_by_form, text_functions
from condsim.rows.weak.things import noun_functions, thing_functions

ReaderT = TypeVar("ReaderT", bound=Reader)


class Registry:
    """Labelling functions by name, and by the conditions they understand.

    The ``fallback`` makes a function for a condition that no function has as its own.
    """

    def __init__(
        self,
        functions: Iterable[LabellingFunction] = (),
        *,
        fallback: Callable[[str], LabellingFunction | None] = lambda condition: None,
    ) -> None:
        self._functions: dict[str, LabellingFunction] = {}
        self._keys: dict[frozenset[str], LabellingFunction] = {}
        self._fallback = fallback
        for function in functions:
            self.add(function)

    def __iter__(self) -> Iterator[LabellingFunction]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: LabellingFunction) -> None:
        """Add a function; its aliases stay with a function that already understands them."""
        if function.name in self._functions:
            raise InputError(
                f"The name of a labelling function must be unique, and there is one called "
                f"{function.name!r} already."
            )
        self._functions[function.name] = function
        for condition in function.wordings:
            self._keys[condition_key(condition)] = function
        for condition in function.aliases:
            self._keys.setdefault(condition_key(condition), function)

    def find(self, condition: str) -> LabellingFunction | None:
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
    if can_read_texts():
        return Registry([*everything, *text_functions().values()], fallback=function_by_form)
    return Registry(everything)


REGISTRY = _built_in_registry()
"""The functions of condsim, and those of the user."""


def labelling_function(
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
        >>> @labelling_function("presence of water", registry=mine)
        ... def water(sentence):
        ...     return "yes" if "water" in sentence.words else None
        >>> mine.find("The presence of water.").name
        'presence of water'
    """
    if not condition_key(name):
        raise InputError(f"The name of a labelling function must be a condition, got {name!r}.")
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"{name}: the weight must be at least 0, got {weight}.")

    def register(read: ReaderT) -> ReaderT:
        registry.add(
            LabellingFunction(
                name=name,
                family=family,
                read=_guarded(name, read),
                compare=_guarded(name, compare),
                answer=_guarded(name, answer),
                wordings=wordings_of(name, wordings),
                aliases=tuple(aliases),
                weight=weight,
                absence_counts=absence_counts,
            )
        )
        return read

    return register


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
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
                f"The labelling function {name!r} raised {type(error).__name__}: {error}, for "
                f"{inputs}; it must return None where it cannot tell."
            ) from error

    return guarded
