"""Settings in YAML files, validated by pydantic: an unknown key or a wrong value is one line."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from condsim.errors import InputError, unknown_name
from condsim.io import write_text

Model = TypeVar("Model", bound="Settings")
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_SIZES = {"too_short": ("min_length", "at least"), "too_long": ("max_length", "at most")}
_KINDS = {
    "bool_type": "of type bool",
    "dict_type": "a mapping",
    "float_type": "a number",
    "finite_number": "a number",
    "int_type": "of type int",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_type": "of type str",
    "tuple_type": "a list",
}


class Settings(BaseModel):
    """Base of recipes, settings and result files: frozen, strict, no unknown key.

    Example:
        >>> class Words(Settings):
        ...     most: int = 5
        >>> Words().replaced(most=7)
        Words(most=7)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    what: ClassVar[str] = "setting"
    """What the settings are called in errors, such as ``recipe``."""

    if not TYPE_CHECKING:  # mypy reads the arguments from the fields

        def __init__(self, **values: object) -> None:
            """Checks the values, or raises InputError for the first that breaks a rule."""
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _first_fault(type(self), error, what=self.what) from error

        __init__.__pydantic_base_init__ = True  # pydantic itself validates without it

    def replaced(self, **changes: object) -> Self:
        """A copy with other values, checked likewise; nested settings may be given as mappings."""
        values = {**dict(self), **changes}
        return validated(type(self), values, what=self.what)


def validated(
    kind: type[Model], values: Mapping[str, Any], *, what: str, source: str = ""
) -> Model:
    """Makes settings of plain values; the first fault is told, with ``what`` and ``source``."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        fault = _first_fault(kind, error, what=what, source=source)
        raise fault if source in str(fault) else InputError(f"{source}: {fault}") from error


def validated_json(kind: type[Model], content: bytes, *, what: str, source: str) -> Model:
    """As `validated`, of a JSON object in UTF-8: nothing that is not checked becomes an object."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        if fault["type"] == "json_invalid":
            reason = fault.get("ctx", {}).get("error", fault["msg"])
            raise InputError(f"{source} is not valid JSON: {reason}.") from error
        if not fault["loc"] and fault["type"] != "value_error":
            raise InputError(f"{source} must be a JSON object.") from error
        raise _first_fault(kind, error, what=what, source=source) from error


def _first_fault(
    kind: type[BaseModel], error: ValidationError, *, what: str, source: str = ""
) -> InputError:
    """The one line for the first fault that pydantic found, unknown keys before others."""
    faults = error.errors(include_url=False)
    fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    source = source or f"The {what}"
    inner: Any = kind
    for part in fault["loc"][:-1]:  # down to the settings that hold the key
        field = inner.model_fields.get(part) if _is_settings(inner) else None
        hint = field.annotation if field else None
        found = next((one for one in (hint, *get_args(hint)) if _is_settings(one)), None)
        if found is not None:
            inner, what, source = found, str(part), f"'{part}'"
    parents = [part for part in fault["loc"] if isinstance(part, int | str)]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parents)
    key = (key.rpartition(".")[2] if _is_settings(inner) and inner is not kind else key).lstrip(".")
    if fault["type"] == "extra_forbidden":
        return InputError(f"{source}: {unknown_name(f'{what} key', key, inner.model_fields)}")
    if fault["type"] == "missing":
        return InputError(f"{source}: the {what} key '{key}' is missing.")
    context = fault.get("ctx", {})
    if fault["type"] == "literal_error":
        known = [
            name.strip("'") for name in str(context["expected"]).replace(" or ", ", ").split(", ")
        ]
        return unknown_name(f"value of '{key}':", str(fault["input"]), known)
    if fault["type"] == "value_error":  # raised by a validator of ours: a whole sentence
        return InputError(str(context["error"]))
    if fault["type"] in _BOUNDS:
        name, words = _BOUNDS[fault["type"]]
        rule = f"{words} {context[name]:.10g}"
    elif fault["type"] in _SIZES:
        name, words = _SIZES[fault["type"]]
        rule = f"a list of {words} {context[name]}"
    else:
        rule = _KINDS.get(fault["type"], fault["msg"].removeprefix("Input should be "))
    shown = _shown(fault["input"])
    return InputError(f"{what.capitalize()} key '{key}' must be {rule}. Got {shown}.")


def _is_settings(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


_LONGEST = 4_000_000  # characters of a file
_ALIASES = 16
_DEEPEST = 50
_OPENS = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSES = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
_SHOWN = 300  # characters of a value in an error
_NO_YAML = (yaml.YAMLError, ValueError, OverflowError, RecursionError)  # dates, digits, nesting


class _Loader(yaml.SafeLoader):
    """Reads numbers such as ``1e-5`` as numbers, as YAML 1.2 does."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _loaded(text: str) -> object:
    """Reads YAML of so many levels and aliases: a small file can hold values without bound."""
    aliases = depth = 0
    for token in yaml.scan(text, _Loader):
        aliases += isinstance(token, yaml.AliasToken)
        depth += isinstance(token, _OPENS) - isinstance(token, _CLOSES)
        if aliases > _ALIASES or depth > _DEEPEST:
            raise yaml.YAMLError(f"at most {_ALIASES} aliases and {_DEEPEST} levels are read")
    return yaml.load(text, _Loader)


def read_mapping(path: Path, *, what: str) -> dict[str, Any]:
    """Reads a YAML file that holds a mapping; errors call it ``what``, such as ``"recipe"``."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise InputError(f"The {what} {path} must have at most {_LONGEST:,} characters.")
        values = _loaded(text)
    except FileNotFoundError as error:
        raise InputError(f"The {what} {path} does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the {what} {path}: {error}.") from error
    except _NO_YAML as error:
        where = " ".join(str(error).split())[:_SHOWN]
        raise InputError(f"{path} is not valid YAML: {where}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a mapping of {what} keys to values.")
    return values


def write_mapping(values: Mapping[str, Any], path: Path) -> None:
    """Writes a YAML file that :func:`read_mapping` reads back, in one step."""
    write_text(path, yaml.safe_dump(dict(values), sort_keys=False))


def override(values: dict[str, Any], text: str) -> None:
    """Changes one key of a mapping, as ``--set objective.quad=0.5`` does; the value is YAML."""
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
        target[last] = _loaded(value)
    except _NO_YAML as error:
        raise InputError(f"--set {_shown(text)}: the value is not valid YAML.") from error


def _shown(value: object) -> str:
    """A value in at most a few lines, also where it nests or is of any size."""
    show = reprlib.Repr()
    show.maxstring = show.maxother = show.maxlong = _SHOWN
    try:
        return show.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return f"a {type(value).__name__}"
