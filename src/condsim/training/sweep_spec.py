"""A sweep: a base recipe, the keys to vary and how, checked before anything runs."""

from __future__ import annotations

import hashlib
import json
import math
import re
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, get_origin

import yaml
from pydantic import Field

from condsim.config import Settings, read_mapping, validated
from condsim.errors import InputError, unknown_name
from condsim.training.recipe import Recipe, load_recipe

Point = dict[str, Any]
"""A value for each key of the space, of the type of the recipe's field."""

Sampler = Literal["grid", "random", "tpe"]

_MOST_TRIALS = 1_000  # points of a grid, trials or seeds
_LISTS = ("grid", "choice")
_RANGES = ("uniform", "log_uniform", "integer")
_LONGEST_NAME = 120
_LARGEST = sys.float_info.max  # NaN, infinity and longer whole numbers are no bounds
_DIGITS = 4
_FIXED = {
    "name": "it is the name of the model",
    "dev": "scores on different dev files cannot be compared",
    "seed": "a seed chosen by its result is luck; the best recipe is trained with 'seeds' anyway",
    "sources": "a sweep goes on only with the files it began with; make one for each mixture",
}


@dataclass(frozen=True)
class Values:
    """A list of values, one or more, all different."""

    ends: tuple[Any, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Each value as a short text; Optuna stores no mappings."""
        return tuple(value_text(value) for value in self.ends)

    def draw(self, random: Random) -> Any:  # noqa: ANN401  (a recipe value of any type)
        """Draws one of the values, each as likely."""
        return random.choice(self.ends)

    def record(self) -> dict[str, Any]:
        """The list as plain values."""
        return {"values": list(self.ends)}


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
        """The bounds."""
        return self.low, self.high

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


@dataclass(frozen=True)
class SweepSpec:
    """What ``condsim sweep`` runs.

    Attributes:
        name: Name of the sweep and of its Optuna study.
        base: The base recipe with the keys of ``set`` changed.
        space: The recipe keys that vary, dotted for a weight such as ``objective.quad``.
        sampler: ``grid`` runs every combination, ``random`` and ``tpe`` run ``trials`` of them.
        seeds: Recipe seeds that the best recipe is trained with at the end, all different.
        test: Held-out file, scored once at the end; never used for choosing.
    """

    name: str
    base: Recipe
    space: Mapping[str, Parameter]
    sampler: Sampler
    trials: int
    seed: int
    seeds: tuple[int, ...]
    test: str | None = None

    def planned(self) -> list[Point] | None:
        """One point a trial, the same at each call; None for ``tpe``, which learns from results."""
        if self.sampler == "tpe":
            return None
        if self.sampler == "grid":
            lists = [parameter.ends for parameter in self.space.values()]
            return [dict(zip(self.space, values, strict=True)) for values in product(*lists)]
        draws = Random(self.seed)
        return [
            {key: parameter.draw(draws) for key, parameter in self.space.items()}
            for _ in range(self.trials)
        ]

    def recipe_for(self, point: Point, *, seed: int | None = None) -> Recipe:
        """The recipe of a point, or InputError if its values do not go together."""
        return _changed(self.base, {**point, **({} if seed is None else {"seed": seed})})

    def search(self) -> dict[str, Any]:
        """Gives all that decides the trials, as plain values: what a storage file belongs to."""
        defaults = Recipe(name="", train="", dev="").model_dump()
        chosen = {key: one for key, one in self.base.model_dump().items() if one != defaults[key]}
        return {
            "recipe": chosen,  # without defaults, so that a key that is new says nothing
            "space": {key: parameter.record() for key, parameter in self.space.items()},
            "sampler": self.sampler,
            "trials": self.trials,
            "seed": self.seed,
        }


def _changed(base: Recipe, point: Point) -> Recipe:
    """A recipe with other values; a dotted key changes one weight of all."""
    changes: dict[str, Any] = {}
    for key, value in point.items():
        head, _, part = key.partition(".")
        if part:
            changes[head] = {**changes.get(head, getattr(base, head)), part: value}
        else:
            changes[head] = value
    return base.replaced(**changes)


class _SweepFile(Settings):
    """The keys of a sweep file."""

    name: str
    recipe: str
    set: dict[str, Any] = Field(default_factory=dict)
    space: dict[str, Any]
    sampler: Sampler = "grid"
    trials: Annotated[int, Field(ge=1, le=_MOST_TRIALS)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    seeds: int | list[int] = 3
    test: str | None = None


def load_sweep(path: Path) -> SweepSpec:
    """Reads a sweep and makes every recipe of it that is known in advance.

    Args:
        path: A YAML file; ``docs/sweep.md`` lists its keys.

    Raises:
        InputError: If the file or its base recipe cannot be read, a key is unknown or missing, a
            value is impossible, or a point of the space makes no valid recipe.
    """
    values = read_mapping(path, what="sweep")
    try:
        return _load(validated(_SweepFile, values, what="sweep", source=str(path)))
    except InputError as error:
        text = str(error)
        raise InputError(text if str(path) in text else f"{path}: {text}") from error


def _load(file: _SweepFile) -> SweepSpec:
    if not file.space:
        raise InputError("'space' must have one key or more; there is nothing to vary.")
    space = {key: _parameter(key, value) for key, value in file.space.items()}
    _check_keys(space, file.set)
    # The text of a value, as --set takes it
    overrides = [
        f"{key}={yaml.safe_dump(value, default_flow_style=True, width=math.inf)}"
        for key, value in file.set.items()
    ]
    base = load_recipe(Path(file.recipe), overrides=overrides)
    seeds = file.seeds
    if isinstance(seeds, int):  # that many after the one that the trials were chosen with
        seeds = list(range(base.seed + 1, base.seed + 1 + min(seeds, _MOST_TRIALS + 1)))
    known = len(set(seeds)) == len(seeds) and all(0 <= seed < 2**32 for seed in seeds)
    if not (known and 1 <= len(seeds) <= _MOST_TRIALS):
        raise InputError(
            f"'seeds' must be a number from 1 to {_MOST_TRIALS}, or a list of as many different "
            f"seeds in [0, 2^32). Got {reprlib.repr(file.seeds)}."
        )
    spec = SweepSpec(
        name=file.name,
        base=base,
        space=_typed(base, space),
        sampler=file.sampler,
        trials=_trials(file, space),
        seed=file.seed,
        seeds=tuple(seeds),
        test=file.test,
    )
    for point in spec.planned() or ():
        try:
            spec.recipe_for(point)
        except InputError as error:
            raise InputError(f"no recipe for {point_text(point)}: {error}") from error
    return spec


def _check_keys(space: Mapping[str, Parameter], fixed: Mapping[str, Any]) -> None:
    """Checks the names of the recipe keys in ``space`` and ``set``."""
    fields = Recipe.model_fields
    for where, keys in (("space", space), ("set", fixed)):
        for key in keys:
            head, dot, part = key.partition(".")
            if head not in fields:
                raise InputError(f"'{where}': {unknown_name('recipe key', key, fields)}")
            if dot and (get_origin(fields[head].annotation) is not dict or not part):
                raise InputError(f"'{where}': {key!r} must be a recipe key; no key is within it.")
    for key in space:
        if (head := key.partition(".")[0]) in _FIXED:
            raise InputError(f"'space' must not have '{key}': {_FIXED[head]}.")
        if key in fixed:
            raise InputError(f"'{key}' must be in 'space' or in 'set', not in both.")
        if head != key and head in space:
            raise InputError(f"'space' must not have both '{head}' and '{key}'; leave one out.")


def _typed(base: Recipe, space: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Makes a recipe with each value, by which it gets its type."""
    first = {key: parameter.ends[0] for key, parameter in space.items()}
    typed: dict[str, Parameter] = {}
    for key, parameter in space.items():
        values = [_typed_value(base, {**first, key: value}, key) for value in parameter.ends]
        labels = [value_text(value) for value in values]
        for label in labels:
            if labels.count(label) > 1:
                raise InputError(f"'space': '{key}' has the value {label} twice; leave one out.")
        typed[key] = (
            Range(parameter.kind, *values)
            if isinstance(parameter, Range)
            else Values(tuple(values))
        )
    return typed


def _typed_value(base: Recipe, point: Point, key: str) -> Any:  # noqa: ANN401
    head, _, part = key.partition(".")
    try:
        value = getattr(_changed(base, point), head)
    except InputError as error:
        raise InputError(f"'space': no recipe with {point_text(point)}: {error}") from error
    return value[part] if part else value


def _trials(file: _SweepFile, space: Mapping[str, Parameter]) -> int:
    """The number of trials, which a grid has by itself."""
    if file.sampler != "grid":
        if file.trials is None:
            raise InputError("the sweep key 'trials' is missing.")
        return file.trials
    for key, parameter in space.items():
        if isinstance(parameter, Range):
            raise InputError(
                f"The sampler 'grid' needs a list of values for every key. Got a range for '{key}';"
                " give it as {grid: [...]}, or use the sampler 'random' or 'tpe'."
            )
    if file.trials is not None:
        raise InputError("'trials' does not go with the sampler 'grid', which runs every point.")
    number = math.prod(len(parameter.ends) for parameter in space.values())
    if number > _MOST_TRIALS:
        raise InputError(
            f"A grid must have at most {_MOST_TRIALS} points. Got {number}; give fewer values, or "
            "use the sampler 'random' or 'tpe'."
        )
    return number


def _parameter(key: str, given: object) -> Parameter:
    """Reads what a key of ``space`` may be."""
    kinds = (*_LISTS, *_RANGES)
    if not isinstance(given, dict) or len(given) != 1:
        raise InputError(
            f"'space': '{key}' must be one of {', '.join(kinds)} with a list, "
            f"such as {{grid: [1, 2]}}. Got {reprlib.repr(given)}."
        )
    kind, content = next(iter(given.items()))
    if kind not in kinds:
        raise InputError(f"'space': '{key}': {unknown_name('kind of range', str(kind), kinds)}")
    if not isinstance(content, list) or not content:
        raise InputError(
            f"'space': '{key}' must have a list of one value or more. Got {kind}: "
            f"{reprlib.repr(content)}."
        )
    if kind in _LISTS:
        return Values(tuple(content))
    types: tuple[type, ...] = (int,) if kind == "integer" else (int, float)
    if (
        len(content) != 2
        or not all(type(bound) in types and abs(bound) <= _LARGEST for bound in content)
        or not content[0] < content[1]
    ):
        rule = "two whole numbers" if kind == "integer" else "two numbers"
        raise InputError(
            f"'space': '{key}' must have {rule}, the lower first, for {kind}. Got "
            f"{reprlib.repr(content)}."
        )
    if kind == "log_uniform" and content[0] <= 0:
        raise InputError(f"'space': '{key}' must be above 0 for log_uniform. Got {content!r}.")
    low, high = content if kind == "integer" else map(float, content)
    return Range(kind, low, high)


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
