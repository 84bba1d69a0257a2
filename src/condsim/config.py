"""Settings in YAML files, validated by pydantic; a wrong key or value is one line."""

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

MAX_YAML_CHARACTERS = 4_000_000
MAX_YAML_ALIASES = 16
# Shorter forms of phrases in pydantic's messages.
_SHORT_PHRASES = {
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
}
# Dates, numbers of many digits and deep nesting make the parser raise more than its own error.
_YAML_ERRORS = (yaml.YAMLError, ValueError, OverflowError, RecursionError)


class Settings(BaseModel):
    """Base of recipes, settings and result files: frozen, strict, no unknown key.

    Example:
        >>> class Words(Settings):
        ...     most: int = 5
        >>> Words().replaced(most=7)
        Words(most=7)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    subject: ClassVar[str] = "setting"
    """Noun for these settings in errors, such as ``recipe``."""

    # mypy reads the arguments from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **values: object) -> None:
            """Check the values; InputError names the first that breaks a rule."""
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise InputError(_first_fault(type(self), error, self.subject)) from error

        # Without this, pydantic validates nested settings through __init__.
        __init__.__pydantic_base_init__ = True

    def replaced(self, **changes: object) -> Self:
        """Copy with other values, which are checked; nested settings may be mappings."""
        return validated(type(self), {**dict(self), **changes}, subject=self.subject)


def validated(
    kind: type[Model], values: Mapping[str, Any], *, subject: str, source: str = ""
) -> Model:
    """Make settings from plain values; InputError names ``source`` and the first fault."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        fault = _first_fault(kind, error, subject)
        raise InputError(f"{source}: {fault}" if source not in fault else fault) from error


def validated_json(kind: type[Model], content: bytes | str, *, subject: str, source: str) -> Model:
    """Make settings from a JSON object; see `validated`."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        if details["type"] == "json_invalid":
            raise InputError(f"{source} is not valid JSON: {details['ctx']['error']}.") from error
        if not details["loc"] and details["type"] != "value_error":
            raise InputError(f"{source} must be a JSON object.") from error
        raise InputError(f"{source}: {_first_fault(kind, error, subject)}") from error


def _first_fault(kind: type[BaseModel], error: ValidationError, subject: str) -> str:
    """Describe one of the faults, an unknown key before others, in nearly pydantic's words."""
    faults = error.errors(include_url=False)
    fault = next((item for item in faults if item["type"] == "extra_forbidden"), faults[0])
    if fault["type"] == "value_error":
        # A validator of ours raised it: the text is a whole sentence.
        return str(fault["ctx"]["error"])
    *parents, last = fault["loc"] or ("",)
    parent = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parents)[1:]
    key = f"[{last}]" if isinstance(last, int) else f".{last}" if parent else last
    if fault["type"] == "extra_forbidden":
        fields = _settings_at(kind, parents).model_fields
        hint = unknown_name(f"{subject} key", str(last), fields)
        return f"{parent}: {hint}" if parent else str(hint)
    if fault["type"] == "missing":
        return f"{subject.capitalize()} key '{parent}{key}' is missing."
    rule = fault["msg"]
    for phrase, short in _SHORT_PHRASES.items():
        rule = rule.replace(phrase, short)
    # Some messages are only the rule, such as "in (0, 1]", and some a sentence about a list.
    if rule[0].isupper():
        rule = f"is wrong: {rule}"
    elif not rule.startswith("must be"):
        rule = f"must be {rule}"
    return f"{subject.capitalize()} key '{parent}{key}' {rule}; got {_short(fault['input'])}."


def _settings_at(kind: type[BaseModel], location: list[int | str]) -> type[BaseModel]:
    """Find the class of the settings that are nested in others."""
    for part in location:
        field = kind.model_fields.get(str(part))
        if field is not None:
            kind = _settings_in(field.annotation) or kind
    return kind


def _settings_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """Find the first settings class in a type such as ``tuple[Source, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    classes = map(_settings_in, get_args(annotation))
    return next((item for item in classes if item is not None), None)


class _Loader(yaml.SafeLoader):
    """Loader that reads ``1e-5`` as a number, as YAML 1.2 does, and bounds the aliases."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # Aliases of aliases make a small file hold values without bound.
        self.aliases += self.check_event(yaml.AliasEvent)
        if self.aliases > MAX_YAML_ALIASES:
            raise yaml.YAMLError(f"there must be at most {MAX_YAML_ALIASES} aliases")
        return super().compose_node(parent, index)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_mapping(path: Path, *, subject: str) -> dict[str, Any]:
    """Read a YAML file that must hold a mapping; errors call it ``subject``, such as "recipe"."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_YAML_CHARACTERS + 1)
        if len(text) > MAX_YAML_CHARACTERS:
            raise yaml.YAMLError(f"there must be at most {MAX_YAML_CHARACTERS:,} characters")
        values = yaml.load(text, _Loader)
    except OSError as error:
        reason = (
            "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        )
        raise InputError(f"The {subject} {path} {reason}.") from error
    except _YAML_ERRORS as error:
        raise InputError(
            f"{path} is not valid YAML: {' '.join(str(error).split())[:300]}"
        ) from error
    if not isinstance(values, dict):
        raise InputError(f"{path} must be a mapping of {subject} keys to values.")
    return values


def write_mapping(values: Mapping[str, Any], path: Path) -> None:
    """Write a YAML file, in one step, that `read_mapping` reads back."""
    write_text(path, yaml.safe_dump(dict(values), sort_keys=False))


def override(values: dict[str, Any], text: str) -> None:
    """Change one key of a mapping, as ``--set objective.quad=0.5`` does; the value is YAML."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--set must be key=value; got {text!r}.")
    *parents, last = key.strip().split(".")
    target = values
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise InputError(f"--set {text!r}: '{parent}' has no keys.")
    try:
        target[last] = yaml.load(value, _Loader)
    except _YAML_ERRORS as error:
        raise InputError(f"--set {_short(text)}: the value is not valid YAML.") from error


def _short(value: object) -> str:
    """Shorten a value that nests or has any size to a line."""
    shortener = reprlib.Repr()
    shortener.maxstring = shortener.maxother = shortener.maxlong = 300
    try:
        return shortener.repr(value)
    except ValueError:
        # An integer may have more digits than Python writes.
        return f"a {type(value).__name__}"
