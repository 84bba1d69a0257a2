"""Settings in YAML files, read into dataclasses: an unknown key or a wrong type is an error."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from condsim.errors import InputError, unknown_name
from condsim.files import replacing

__all__ = ["override", "read_mapping", "typed", "write_mapping"]

Settings = TypeVar("Settings")


def read_mapping(path: Path, *, what: str) -> dict[str, Any]:
    """Reads a YAML file that holds a mapping.

    Args:
        path: The file.
        what: What it is called in errors, such as ``"recipe"``.

    Returns:
        The mapping, its values unchecked.

    Raises:
        InputError: If the file cannot be read, is no YAML or holds no mapping.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"The {what} {path} does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the {what} {path}: {error}.") from error
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())
        raise InputError(f"{path} is not valid YAML: {where}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a mapping of {what} keys to values.")
    return values


def write_mapping(values: Mapping[str, Any], path: Path) -> None:
    """Writes a YAML file that :func:`read_mapping` reads back, in one step.

    Args:
        values: Plain values by key, written in their order.
        path: The file.

    Raises:
        InputError: If its folder does not exist.
    """
    with replacing(path) as partial:
        partial.write_text(yaml.safe_dump(dict(values), sort_keys=False), encoding="utf-8")


def override(values: dict[str, Any], text: str) -> None:
    """Changes one key of a mapping, as ``--set`` does.

    Args:
        values: The mapping; changed in place.
        text: Such as ``"epochs=5"`` or ``"objective.quad=0.5"``; the value is YAML.

    Raises:
        InputError: If the text has no ``=``, its value is no YAML or the key is inside a value.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--set takes key=value. Got {text!r}.")
    *parents, last = key.strip().split(".")
    target = values
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise InputError(f"--set {text!r}: '{parent}' holds no keys of its own.")
    try:
        target[last] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InputError(f"--set {text!r}: the value is not valid YAML.") from error


def typed(kind: type[Settings], values: Mapping[str, Any], *, what: str, source: str) -> Settings:
    """Makes a dataclass from plain values.

    Args:
        kind: The dataclass; its fields are of plain types, ``Literal``, lists, mappings or
            dataclasses like itself.
        values: Values by name of the field.
        what: What the settings are called in errors, such as ``"recipe"``.
        source: Where they come from, for errors.

    Returns:
        The dataclass, each value of its field's type.

    Raises:
        InputError: If a key is unknown or missing, or a value is of the wrong type.
    """
    hints = get_type_hints(kind)
    for key in values:
        if key not in hints:
            raise InputError(f"{source}: {unknown_name(f'{what} key', str(key), hints)}")
    checked = {key: _coerce(what, key, value, hints[key]) for key, value in values.items()}
    for required in dataclasses.fields(kind):  # type: ignore[arg-type]  # no bound says dataclass
        if (
            required.default is dataclasses.MISSING
            and required.default_factory is dataclasses.MISSING
            and required.name not in checked
        ):
            raise InputError(f"{source}: the {what} key '{required.name}' is missing.")
    return kind(**checked)


def _coerce(what: str, key: str, value: Any, hint: Any) -> Any:  # noqa: ANN401  (any YAML value)
    """Checks a YAML value against a field's type; numbers written as ``1e-5`` become floats."""
    origin = get_origin(hint)
    if origin is Literal:
        if value not in get_args(hint):
            raise unknown_name(f"value of '{key}':", str(value), map(str, get_args(hint)))
        return value
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        inner = next(part for part in get_args(hint) if part is not type(None))
        return _coerce(what, key, value, inner)
    if origin in (list, dict) or dataclasses.is_dataclass(hint):
        return _coerce_parts(what, key, value, hint)
    if hint is Any:
        return value
    if hint is float:
        return _coerce_float(what, key, value)
    if isinstance(value, bool) != (hint is bool) or not isinstance(value, hint):
        raise _wrong(what, key, f"of type {hint.__name__}", value)
    return value


def _coerce_parts(what: str, key: str, value: Any, hint: Any) -> Any:  # noqa: ANN401  (as above)
    """Checks a list, a mapping or the fields of a dataclass, each part by its own type."""
    if get_origin(hint) is list:
        if not isinstance(value, list):
            raise _wrong(what, key, "a list", value)
        (inner,) = get_args(hint)
        return [_coerce(what, f"{key}[{place}]", part, inner) for place, part in enumerate(value)]
    if not isinstance(value, dict):
        raise _wrong(what, key, "a mapping", value)
    if dataclasses.is_dataclass(hint):
        return typed(hint, value, what=key, source=f"'{key}'")  # type: ignore[arg-type]  # a class
    inner = get_args(hint)[1]
    return {str(name): _coerce(what, f"{key}.{name}", part, inner) for name, part in value.items()}


def _coerce_float(what: str, key: str, value: Any) -> float:  # noqa: ANN401  (any YAML value)
    try:  # YAML 1.1 reads 1e-5 (no dot) as a text
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(what, key, "a number", value)
    return number


def _wrong(what: str, key: str, rule: str, value: object) -> InputError:
    return InputError(f"{what.capitalize()} key '{key}' must be {rule}. Got {value!r}.")
