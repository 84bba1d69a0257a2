"""Specification of a sweep: a base recipe and the keys to vary, checked before anything runs."""

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
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import Field

from condsim.config import Settings, read_mapping, validated
from condsim.errors import InputError, check_name, located
from condsim.training.recipe import Recipe, load_recipe

Point = dict[str, Any]
"""A value for each key of the space, of the type of the recipe's field."""

MAX_TRIALS = 1_000
MAX_NAME_LENGTH = 120
SIGNIFICANT_DIGITS = 4
KINDS = ("grid", "choice", "uniform", "log_uniform", "integer")
FIXED_KEYS = {
    "name": "it is the name of the model",
    "dev": "scores on different dev files cannot be compared",
    "seed": "a seed chosen by its result is luck; use 'seeds'",
    "sources": "a sweep is resumed with the files that it began with; make one for each mixture",
}


@dataclass(frozen=True)
class Parameter:
    """Values or range of a recipe key.

    Attributes:
        kind: ``values``, or of a range ``uniform``, ``log_uniform`` (uniform in the logarithm) or
            ``integer``.
        ends: The values, all different, or the two bounds of the range.
    """

    kind: str
    ends: tuple[Any, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Each value as a short text; Optuna stores no mappings."""
        return tuple(value_text(value) for value in self.ends)

    @property
    def text(self) -> str:
        """The values or the range as a short text."""
        if self.kind == "values":
            return ", ".join(self.labels)
        return f"{self.ends[0]} to {self.ends[1]}, {self.kind}"

    def draw(self, random: Random) -> Any:  # noqa: ANN401
        """Draw one of the values, each with the same probability, or a number of the range."""
        if self.kind == "values":
            return random.choice(self.ends)
        low, high = self.ends
        if self.kind == "integer":
            return random.randint(low, high)
        if self.kind == "log_uniform":
            return self.rounded(math.exp(random.uniform(math.log(low), math.log(high))))
        return self.rounded(random.uniform(low, high))

    def rounded(self, value: float) -> float:
        """Round a number to four significant digits within the range."""
        low, high = self.ends
        return float(min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), low), high))


@dataclass(frozen=True)
class SweepSpec:
    """Specification of a sweep.

    Attributes:
        name: Name of the sweep and of its Optuna study.
        base: The base recipe with the keys of ``set`` changed.
        space: The recipe keys that vary, dotted for a weight such as ``objective.quad``.
        sampler: ``grid`` runs every combination, ``random`` and ``tpe`` run ``trials`` of them.
        trials: Number of trials.
        seed: Seed of the sampler.
        seeds: Recipe seeds that the best recipe is trained with at the end, all different.
        test: Held-out file, scored once at the end; never used for choosing.
    """

    name: str
    base: Recipe
    space: Mapping[str, Parameter]
    sampler: Literal["grid", "random", "tpe"]
    trials: int
    seed: int
    seeds: tuple[int, ...]
    test: str | None = None

    def planned(self) -> list[Point] | None:
        """One point a trial, the same at each call; None for ``tpe``, which uses the results."""
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
        """Recipe of a point; a dotted key changes one weight of all."""
        changes: dict[str, Any] = {} if seed is None else {"seed": seed}
        for key, value in point.items():
            head, _, part = key.partition(".")
            weights = changes.get(head, getattr(self.base, head))
            changes[head] = {**weights, part: value} if part else value
        with located(f"'space': no recipe with {point_text(point)}"):
            return self.base.replaced(**changes)

    def search(self) -> dict[str, Any]:
        """Plain values that decide the trials.

        The recipe is given without defaults, so that a new key changes nothing.
        """
        return {
            "recipe": self.base.model_dump(exclude_defaults=True),
            "space": {key: {p.kind: list(p.ends)} for key, p in self.space.items()},
            "sampler": self.sampler,
            "trials": self.trials,
            "seed": self.seed,
        }


class _SweepFile(Settings):
    """Keys of a sweep file."""

    subject: ClassVar[str] = "sweep"

    name: str
    recipe: str
    set: dict[str, Any] = Field(default_factory=dict)
    space: dict[str, Any] = Field(min_length=1)
    sampler: Literal["grid", "random", "tpe"] = "grid"
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    seeds: int | list[int] = 3
    test: str | None = None


def load_sweep(path: Path) -> SweepSpec:
    """Read a sweep and make every recipe of it that is known in advance.

    Args:
        path: A YAML file; ``docs/training.md`` lists its keys.

    Returns:
        The specification.

    Raises:
        InputError: If the file or its base recipe cannot be read, a key is unknown or missing, a
            value is impossible, or a point of the space makes no valid recipe.
    """
    values = read_mapping(path, subject="sweep")
    with located(str(path)):
        return _build_spec(validated(_SweepFile, values, subject="sweep"))


def _build_spec(file: _SweepFile) -> SweepSpec:
    _check_keys(file)
    # The text of a value, as --set takes it.
    overrides = [
        f"{key}={yaml.safe_dump(value, default_flow_style=True, width=math.inf)}"
        for key, value in file.set.items()
    ]
    base = load_recipe(Path(file.recipe), overrides=overrides)
    space = {key: _parameter(key, value) for key, value in file.space.items()}
    spec = SweepSpec(
        name=file.name,
        base=base,
        space=space,
        sampler=file.sampler,
        trials=_trials(file, space),
        seed=file.seed,
        seeds=_seeds(file.seeds, base.seed),
        test=file.test,
    )
    # Each value with the first ones of other keys, then the points that are known in advance.
    first = {key: parameter.ends[0] for key, parameter in space.items()}
    for key, parameter in space.items():
        for value in parameter.ends:
            spec.recipe_for({**first, key: value})
        if len(set(parameter.labels)) < len(parameter.labels):
            raise InputError(f"'space': '{key}' has a value twice: {', '.join(parameter.labels)}.")
    for point in spec.planned() or ():
        spec.recipe_for(point)
    return spec


def _check_keys(file: _SweepFile) -> None:
    """Check the names of the recipe keys in ``space`` and ``set``."""
    for section, keys in (("space", file.space), ("set", file.set)):
        for key in keys:
            head, _, part = key.partition(".")
            has_parts = part and head in ("objective", "sources")
            with located(f"'{section}'"):
                check_name("recipe key", head if has_parts else key, Recipe.model_fields)
    for key in file.space:
        head = key.partition(".")[0]
        reason = FIXED_KEYS.get(head)
        if key in file.set:
            reason = "'set' has it too"
        elif head != key and head in file.space:
            reason = f"it has '{head}' too"
        if reason is not None:
            raise InputError(f"'space' must not have '{key}': {reason}.")


def _parameter(key: str, value: object) -> Parameter:
    """Read the values or the range of a key of ``space``."""
    kind: Any = ""
    ends: Any = None
    if isinstance(value, dict) and len(value) == 1:
        [(kind, ends)] = value.items()
    if kind not in KINDS or not isinstance(ends, list) or not ends:
        raise InputError(
            f"'space': '{key}' must be one of {', '.join(KINDS)} with a list of one value or more, "
            f"such as {{grid: [1, 2]}}; got {reprlib.repr(value)}."
        )
    if kind in ("grid", "choice"):
        return Parameter("values", tuple(ends))
    types = (int,) if kind == "integer" else (int, float)
    lowest = 0 if kind == "log_uniform" else -sys.float_info.max
    numbers = all(type(end) in types and lowest < end <= sys.float_info.max for end in ends)
    if len(ends) != 2 or not numbers or ends[0] >= ends[1]:
        noun = {"integer": "integers", "log_uniform": "numbers above 0"}.get(kind, "numbers")
        raise InputError(
            f"'space': '{key}' must have two {noun}, the lower first, for {kind}; got "
            f"{reprlib.repr(ends)}."
        )
    return Parameter(kind, tuple(ends) if kind == "integer" else tuple(map(float, ends)))


def _trials(file: _SweepFile, space: Mapping[str, Parameter]) -> int:
    """Number of trials, which a grid has by itself."""
    if (file.trials is None) != (file.sampler == "grid"):
        raise InputError(
            "'trials' must be given for the samplers 'random' and 'tpe', and not for 'grid', which "
            "runs every point."
        )
    if file.trials is not None:
        return file.trials
    for key, parameter in space.items():
        if parameter.kind != "values":
            raise InputError(
                f"The sampler 'grid' needs a list of values for every key; '{key}' has a range."
            )
    number = math.prod(len(parameter.ends) for parameter in space.values())
    if number > MAX_TRIALS:
        raise InputError(f"A grid must have at most {MAX_TRIALS} points; got {number}.")
    return number


def _seeds(seeds: int | list[int], first: int) -> tuple[int, ...]:
    """Seeds of the best recipe; a number stands for as many after the seed of the trials."""
    if isinstance(seeds, int):
        seeds = list(range(first + 1, first + 1 + min(seeds, MAX_TRIALS + 1)))
    valid = len(set(seeds)) == len(seeds) and all(0 <= seed < 2**32 for seed in seeds)
    if not (valid and 1 <= len(seeds) <= MAX_TRIALS):
        raise InputError(
            f"'seeds' must be a number from 1 to {MAX_TRIALS}, or a list of as many different "
            f"seeds in [0, 2^32); got {reprlib.repr(seeds)}."
        )
    return tuple(seeds)


def value_text(value: object) -> str:
    """A recipe value as a short text: ``true``, ``1e-05``, ``mse1+quad0.5``."""
    if isinstance(value, Mapping):
        return "+".join(f"{name}{value_text(part)}" for name, part in value.items())
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


def point_text(point: Mapping[str, Any]) -> str:
    """A point as a short text: ``learning_rate=1e-05,transform=true``."""
    return ",".join(f"{key}={value_text(value)}" for key, value in point.items())


def point_name(point: Mapping[str, Any]) -> str:
    """Name the run folder of a point; different points have different names."""
    text = point_text(point)
    plain = re.sub(r"[^\w.,=+-]", "-", text, flags=re.ASCII)
    if plain == text and len(text) <= MAX_NAME_LENGTH:
        return text
    digest = hashlib.sha256(json.dumps(point).encode()).hexdigest()[:8]
    return f"{plain[:MAX_NAME_LENGTH]}-{digest}"
