"""The search space of a sweep: lists of values and ranges, and points in it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from condsim.errors import InputError, unknown_name

Point = dict[str, Any]
"""A value for each key of the space, of the type of the recipe's field."""

_LISTS = ("grid", "choice")
_RANGES = ("uniform", "log_uniform", "integer")
_LONGEST_NAME = 120
_DIGITS = 4


@dataclass(frozen=True)
class Values:
    """A list of values.

    Attributes:
        values: The values, one or more, all different.
    """

    values: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that are tried out before anything runs: all of them."""
        return self.values

    @property
    def labels(self) -> tuple[str, ...]:
        """Each value as a short text; Optuna stores no mappings."""
        return tuple(value_text(value) for value in self.values)

    def with_ends(self, values: Sequence[Any]) -> Values:
        """The same list with values of another type."""
        return Values(tuple(values))

    def draw(self, random: Random) -> Any:  # noqa: ANN401  (a recipe value of any type)
        """Draws one of the values, each as likely."""
        return random.choice(self.values)

    def record(self) -> dict[str, Any]:
        """The list as plain values."""
        return {"values": list(self.values)}


@dataclass(frozen=True)
class Range:
    """A range of numbers.

    Attributes:
        kind: ``uniform``, ``log_uniform`` (uniform in the logarithm) or ``integer``.
        low: The lowest number.
        high: The highest number, above ``low``.
    """

    kind: Literal["uniform", "log_uniform", "integer"]
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """The values that are tried out before anything runs: the bounds."""
        return self.low, self.high

    def with_ends(self, values: Sequence[Any]) -> Range:
        """The same range with bounds of another type."""
        return Range(self.kind, *values)

    def draw(self, random: Random) -> float:
        """Draws a number, rounded as :meth:`rounded` does."""
        if self.kind == "integer":
            return random.randint(int(self.low), int(self.high))
        if self.kind == "log_uniform":
            return self.rounded(math.exp(random.uniform(math.log(self.low), math.log(self.high))))
        return self.rounded(random.uniform(self.low, self.high))

    def rounded(self, value: float) -> float:
        """Rounds to four significant digits within the bounds; whole numbers stay."""
        if self.kind == "integer":
            return value
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    def record(self) -> dict[str, Any]:
        """The range as plain values."""
        return {self.kind: [self.low, self.high]}


Parameter = Values | Range


def parse_parameter(key: str, given: object) -> Parameter:
    """Reads what a key of ``space`` may be."""
    kinds = (*_LISTS, *_RANGES)
    if not isinstance(given, dict) or len(given) != 1:
        raise InputError(
            f"'space': '{key}' must be one of {', '.join(kinds)} with a list, "
            f"such as {{grid: [1, 2]}}. Got {given!r}."
        )
    kind, content = next(iter(given.items()))
    if kind not in kinds:
        error = unknown_name("kind of range", str(kind), kinds)
        raise InputError(f"'space': '{key}': {error}")
    if not isinstance(content, list) or not content:
        raise InputError(
            f"'space': '{key}' must have a list of one value or more. Got {kind}: {content!r}."
        )
    return Values(tuple(content)) if kind in _LISTS else _range(key, kind, content)


def _range(
    key: str, kind: Literal["uniform", "log_uniform", "integer"], content: list[Any]
) -> Range:
    rule = "two whole numbers" if kind == "integer" else "two numbers"
    bounds = [_number(bound) for bound in content]
    if (
        len(bounds) != 2
        or not all(map(math.isfinite, bounds))
        or not bounds[0] < bounds[1]
        or (kind == "integer" and any(type(bound) is not int for bound in content))
    ):
        raise InputError(
            f"'space': '{key}' must have {rule}, the lower first, for {kind}. Got {content!r}."
        )
    if kind == "log_uniform" and bounds[0] <= 0:
        raise InputError(f"'space': '{key}' must be above 0 for log_uniform. Got {content!r}.")
    low, high = content if kind == "integer" else bounds
    return Range(kind, low, high)


def _number(given: object) -> float:
    """A number from YAML, whose 1.1 reads ``1e-5`` as a text; NaN for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return math.nan
    try:
        return float(given)
    except ValueError:
        return math.nan


def value_text(value: object) -> str:
    """A recipe value as a short text: ``true``, ``1e-05``, ``mse1+quad0.5``."""
    if isinstance(value, Mapping):
        return "+".join(f"{name}{value_text(part)}" for name, part in value.items())
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


def point_text(point: Mapping[str, Any]) -> str:
    """A point as a short text: ``learning_rate=1e-05,transform=true``."""
    return ",".join(f"{key}={value_text(value)}" for key, value in point.items())


def point_name(point: Mapping[str, Any]) -> str:
    """Names the run folder of a point; other points have other names."""
    text = point_text(point)
    plain = re.sub(r"[^\w.,=+-]", "-", text, flags=re.ASCII)
    if plain == text and len(text) <= _LONGEST_NAME:
        return text
    digest = hashlib.sha256(json.dumps(point).encode()).hexdigest()[:8]
    return f"{plain[:_LONGEST_NAME]}-{digest}"
