"""A sweep: a base recipe, the keys to vary and how, typed and checked before anything runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml

from condsim.errors import InputError, unknown_name
from condsim.settings import read_mapping
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.sweep.space import (
    Parameter,
    Point,
    Range,
    Values,
    parse_parameter,
    point_text,
    value_text,
)

Sampler = Literal["grid", "random", "tpe"]

LARGEST_GRID = 1_000
_KEYS = ("name", "recipe", "set", "space", "sampler", "trials", "seed", "seeds", "test")
_FIXED = {
    "name": "it is the name of the model",
    "dev": "figures on different dev files cannot be compared",
    "seed": "a seed chosen by its result is luck; the best recipe is trained with 'seeds' anyway",
}


@dataclass(frozen=True)
class SweepSpec:
    """What ``condsim sweep`` runs.

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
    sampler: Sampler
    trials: int
    seed: int
    seeds: tuple[int, ...]
    test: str | None = None

    def planned(self) -> list[Point] | None:
        """Lists the points that are known before the first result.

        Returns:
            One point a trial, the same at each call; None for the sampler ``tpe``.
        """
        if self.sampler == "tpe":
            return None
        if self.sampler == "grid":
            return list(_grid(self.space))
        draws = Random(self.seed)
        return [
            {key: parameter.draw(draws) for key, parameter in self.space.items()}
            for _ in range(self.trials)
        ]

    def recipe_for(self, point: Point, *, seed: int | None = None) -> Recipe:
        """Builds the recipe of a point.

        Args:
            point: A value for each key of the space.
            seed: The seed of the recipe; that of the base recipe if None.

        Returns:
            The recipe.

        Raises:
            InputError: If the values do not go together.
        """
        changes: dict[str, Any] = {}
        for key, value in point.items():
            head, _, part = key.partition(".")
            if part:
                changes[head] = {**changes.get(head, getattr(self.base, head)), part: value}
            else:
                changes[head] = value
        if seed is not None:
            changes["seed"] = seed
        return dataclasses.replace(self.base, **changes)

    def search(self) -> dict[str, Any]:
        """Gives all that decides the trials, as plain values: what a storage file belongs to."""
        defaults = Recipe(name="", train="", dev="").to_dict()
        chosen = {
            key: value for key, value in self.base.to_dict().items() if value != defaults[key]
        }
        return {
            "recipe": chosen,  # without defaults, so that a key that is new says nothing
            "space": {key: parameter.record() for key, parameter in self.space.items()},
            "sampler": self.sampler,
            "trials": self.trials,
            "seed": self.seed,
        }


def load_sweep(path: Path) -> SweepSpec:
    """Reads a sweep and makes every recipe of it that is known in advance.

    Args:
        path: A YAML file; ``docs/sweep.md`` lists its keys.

    Returns:
        The checked sweep.

    Raises:
        InputError: If the file or its base recipe cannot be read, a key is unknown or missing, a
            value is impossible, or a point of the space makes no valid recipe.
    """
    try:
        return _load(path)
    except InputError as error:
        text = str(error)
        raise InputError(text if str(path) in text else f"{path}: {text}") from error


def _load(path: Path) -> SweepSpec:
    values = read_mapping(path, what="sweep")
    for key in values:
        if key not in _KEYS:
            raise unknown_name("sweep key", str(key), _KEYS)
    recipe = Path(_text(values, "recipe"))
    fixed = _mapping(values, "set", default={})
    space = {
        str(key): parse_parameter(str(key), value)
        for key, value in _mapping(values, "space").items()
    }
    if not space:
        raise InputError("'space' must have one key or more; there is nothing to vary.")
    _check_keys(space, fixed)
    base, space = _typed(recipe, fixed, space)
    sampler = _sampler(values, space)
    spec = SweepSpec(
        name=_text(values, "name"),
        base=base,
        space=space,
        sampler=sampler,
        trials=_trials(values, sampler, space),
        seed=_whole(values, "seed", at_least=0, default=0),
        seeds=_seeds(values.get("seeds", 3), base.seed),
        test=_text(values, "test") if values.get("test") is not None else None,
    )
    for point in spec.planned() or ():
        try:
            spec.recipe_for(point)
        except InputError as error:
            raise InputError(f"no recipe for {point_text(point)}: {error}") from error
    return spec


def _check_keys(space: Mapping[str, Parameter], fixed: Mapping[Any, Any]) -> None:
    """Checks the names of the recipe keys in ``space`` and ``set``."""
    hints = get_type_hints(Recipe)
    for where, keys in (("space", space), ("set", fixed)):
        for key in keys:
            head, _, part = str(key).partition(".")
            if head not in hints:
                error = unknown_name("recipe key", str(key), hints)
                raise InputError(f"'{where}': {error}")
            if "." in str(key) and (get_origin(hints[head]) is not dict or not part):
                raise InputError(f"'{where}': {key!r} must be a recipe key; no key is within it.")
    for key in space:
        if key in _FIXED:
            raise InputError(f"'space' must not have '{key}': {_FIXED[key]}.")
        if key in fixed:
            raise InputError(f"'{key}' must be in 'space' or in 'set', not in both.")
        if (head := key.partition(".")[0]) != key and head in space:
            raise InputError(f"'space' must not have both '{head}' and '{key}'; leave one out.")


def _typed(
    path: Path, fixed: Mapping[Any, Any], space: Mapping[str, Parameter]
) -> tuple[Recipe, dict[str, Parameter]]:
    """Reads the base recipe, and makes a recipe with each value, by which it gets its type."""
    overrides = [_override(str(key), value) for key, value in fixed.items()]
    first = {key: parameter.ends[0] for key, parameter in space.items()}
    base = load_recipe(path, overrides=overrides)
    weights = [_override("objective", base.objective)]  # a dotted key changes one of all of them
    typed = {}
    for key, parameter in space.items():
        values = []
        for value in parameter.ends:
            point = {**first, key: value}
            changes = [_override(name, part) for name, part in point.items()]
            try:
                recipe = load_recipe(path, overrides=[*overrides, *weights, *changes])
            except InputError as error:
                raise InputError(f"'space': no recipe with {point_text(point)}: {error}") from error
            head, _, part = key.partition(".")
            values.append(getattr(recipe, head)[part] if part else getattr(recipe, head))
        labels = [value_text(value) for value in values]
        for label in labels:
            if labels.count(label) > 1:
                raise InputError(f"'space': '{key}' has the value {label} twice; leave one out.")
        typed[key] = parameter.with_ends(values)
    return base, typed


def _override(key: str, value: object) -> str:
    """The text that sets a recipe key, as ``--set`` takes it."""
    return f"{key}={yaml.safe_dump(value, default_flow_style=True, width=math.inf)}"


def _sampler(values: Mapping[Any, Any], space: Mapping[str, Parameter]) -> Sampler:
    given = values.get("sampler", "grid")
    if given not in get_args(Sampler):
        raise unknown_name("sampler", str(given), get_args(Sampler))
    sampler: Sampler = given
    for key, parameter in space.items():
        if sampler == "grid" and isinstance(parameter, Range):
            raise InputError(
                f"The sampler 'grid' needs a list of values for every key. Got a range for '{key}';"
                " give it as {grid: [...]}, or use the sampler 'random' or 'tpe'."
            )
    return sampler


def _trials(values: Mapping[Any, Any], sampler: Sampler, space: Mapping[str, Parameter]) -> int:
    if sampler != "grid":
        return _whole(values, "trials", at_least=1)
    if "trials" in values:
        raise InputError("'trials' does not go with the sampler 'grid', which runs every point.")
    number = math.prod(len(parameter.ends) for parameter in space.values())
    if number > LARGEST_GRID:
        raise InputError(
            f"A grid must have at most {LARGEST_GRID} points. Got {number}; give fewer values, or "
            "use the sampler 'random' or 'tpe'."
        )
    return number


def _grid(space: Mapping[str, Parameter]) -> Iterator[Point]:
    lists = [parameter.values for parameter in space.values() if isinstance(parameter, Values)]
    for values in product(*lists):
        yield dict(zip(space, values, strict=True))


def _seeds(given: object, base: int) -> tuple[int, ...]:
    """A count N stands for the N seeds after the one that the trials were chosen with."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return tuple(range(base + 1, base + 1 + given))
    if isinstance(given, list) and given:
        whole = [seed for seed in given if type(seed) is int and seed >= 0]
        if len(set(whole)) == len(given):
            return tuple(whole)
    raise InputError(
        f"'seeds' must be a number of at least 1 or a list of different seeds. Got {given!r}."
    )


def _text(values: Mapping[Any, Any], key: str) -> str:
    if key not in values:
        raise InputError(f"the sweep key '{key}' is missing.")
    if not isinstance(values[key], str) or not values[key].strip():
        raise InputError(f"'{key}' must be a text. Got {values[key]!r}.")
    return str(values[key])


def _mapping(
    values: Mapping[Any, Any], key: str, *, default: dict[Any, Any] | None = None
) -> dict[Any, Any]:
    given = values.get(key, default)
    if not isinstance(given, dict):
        if key not in values:
            raise InputError(f"the sweep key '{key}' is missing.")
        raise InputError(f"'{key}' must be a mapping of recipe keys. Got {given!r}.")
    return given


def _whole(
    values: Mapping[Any, Any], key: str, *, at_least: int, default: int | None = None
) -> int:
    given = values.get(key, default)
    if key not in values and default is None:
        raise InputError(f"the sweep key '{key}' is missing.")
    if type(given) is not int or given < at_least:
        raise InputError(f"'{key}' must be a whole number of at least {at_least}. Got {given!r}.")
    return given
