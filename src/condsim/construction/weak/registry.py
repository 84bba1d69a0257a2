"""Labelling functions: each reads one attribute from a sentence and compares two values of it.

A function of one's own is a few lines:

```python
@labelling_function("severity of the incident", compare=graded("near miss", "injury", "death"))
def severity(sentence):
    ...
```
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from condsim.construction.weak.compare import HIGHEST, LOWEST, yes_or_no
from condsim.construction.weak.conditions import condition_key, wordings_of
from condsim.construction.weak.language import Sentence
from condsim.errors import CondSimError, InputError


class Absent(Enum):
    """What a function returns where the sentence has nothing the condition could be about."""

    ABSENT = "absent"


ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT

Reader: TypeAlias = Callable[[Sentence], Any]
"""Gives the value; None if it is not understood; `ABSENT` if the attribute is absent."""

ReaderT = TypeVar("ReaderT", bound=Reader)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class LabellingFunction:
    """Reads one attribute and compares two values of it.

    Attributes:
        name: The condition in plain words, such as ``"number of people"``; unique.
        family: What it belongs to, such as ``"number"``.
        read: See `Reader`.
        compare: Takes two values and gives a label from 1 (entirely different) to 5 (the same), or
            None where it cannot tell.
        answer: Says a value in a few words.
        wordings: Ways to write the condition, the name among them.
        also: Further conditions it understands, which are not written.
        weight: How often it is drawn, relative to others, at least 0.
        none_is_a_value: Whether a sentence without the attribute says something ("no people"), so
            that only two such sentences make the condition void.
    """

    name: str
    family: str
    read: Reader
    compare: Callable[[Any, Any], float | None]
    answer: Callable[[Any], str]
    wordings: tuple[str, ...]
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
        if value is None:
            return ""
        if value is ABSENT:
            return "none" if self.none_is_a_value else ""
        return self.answer(value)

    def void(self, one: Any, two: Any) -> bool:  # noqa: ANN401  (any value)
        """Tells whether the condition applies to neither sentence, or not to both."""
        absent = (one is ABSENT) + (two is ABSENT)
        return absent == 2 or (
            absent == 1 and one is not None and two is not None and not self.none_is_a_value
        )


class Registry:
    """Labelling functions by name, and by the conditions they understand."""

    def __init__(self, functions: Iterable[LabellingFunction] = ()) -> None:
        self._functions: dict[str, LabellingFunction] = {}
        self._keys: dict[frozenset[str], LabellingFunction] = {}
        for function in functions:
            self.add(function)

    def __iter__(self) -> Iterator[LabellingFunction]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: LabellingFunction) -> None:
        """Adds a function.

        Its name and wordings are its own from now on; a condition in ``also`` stays with the
        function that understands it already, if there is one.
        """
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
        return self._keys.get(condition_key(condition))


REGISTRY = Registry()
"""The functions that come with condsim, and those of the user."""


def labelling_function(
    name: str,
    *,
    compare: Callable[[Any, Any], float | None] = yes_or_no,
    family: str = "own",
    answer: Callable[[Any], str] = str,
    wordings: Sequence[str] = (),
    also: Sequence[str] = (),
    weight: float = 1.0,
    none_is_a_value: bool = False,
    registry: Registry = REGISTRY,
) -> Callable[[ReaderT], ReaderT]:
    """Registers a function that reads an attribute from a sentence.

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


def _guarded(name: str, function: Callable[P, T]) -> Callable[P, T]:
    """The function, except that what it raises is told in one line."""

    @functools.wraps(function)
    def guarded(*values: P.args, **more: P.kwargs) -> T:
        try:
            return function(*values, **more)
        except CondSimError:
            raise
        except Exception as error:
            given = ", ".join(repr(getattr(value, "text", value)) for value in values)
            raise InputError(
                f"The labelling function {name!r} raised {type(error).__name__}: {error}, for "
                f"{given}. It must return None where it cannot tell."
            ) from error

    return guarded
