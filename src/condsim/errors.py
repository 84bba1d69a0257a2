"""Errors that condsim raises on purpose, their lines, and imports of optional libraries."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_TORCH_EXTRAS = ("train", "sweep", "contexts", "llm", "build")
_CPU_TORCH = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


# Names that the user knows, by the paths of temporary copies.
_given_names: dict[str, str] = {}


class CondSimError(Exception):
    """Base class of every error that condsim raises on purpose."""

    def __init__(self, message: str = "") -> None:
        """Store the message, which names files as the user does."""
        super().__init__(with_given_names(message))


@contextmanager
def named_as(copy: Path, name: object) -> Iterator[None]:
    """Let messages that are made in the block call a temporary copy by the name of its original."""
    _given_names[str(copy)] = str(name)
    try:
        yield
    finally:
        del _given_names[str(copy)]


def with_given_names(text: str) -> str:
    """Replace the paths of temporary copies by the names that the user knows."""
    for path, name in _given_names.items():
        text = text.replace(path, name)
    return text


class InputError(CondSimError, ValueError):
    """Data, an option or a recipe breaks a documented rule."""


class ModelError(CondSimError, ValueError):
    """A model folder is missing, damaged or of the wrong kind."""


class ScoredWarning(UserWarning):
    """Texts were scored that the model cannot read, so that their scores mean little."""


class MissingExtraError(CondSimError, ImportError):
    """An optional library is not installed."""

    @classmethod
    def of(cls, library: str, *, extra: str) -> MissingExtraError:
        """Make the error for a library of an extra, with the line that installs it."""
        message = f"This needs {library}, which is not installed: pip install 'condsim[{extra}]'"
        if extra in _TORCH_EXTRAS:
            message += f" (without a GPU, a smaller torch first: {_CPU_TORCH})"
        return cls(message)


def unknown_name(subject: str, name: str, choices: Iterable[str]) -> InputError:
    """Make the error for an unknown name; list the near choices, or all if none is near."""
    # Not needed for `import condsim`, which should be fast.
    import difflib

    names = sorted(choices)
    near = difflib.get_close_matches(name, names, n=3)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(names)}."
    )
    return InputError(f"Unknown {subject} {name!r}. {hint}")


def check_name(subject: str, name: str, choices: Collection[str]) -> None:
    """Reject a name that is not one of the choices."""
    if name not in choices:
        raise unknown_name(subject, name, choices)


def check_at_least(lowest: int, **numbers: float) -> None:
    """Reject a number, named as its parameter, below the lowest that is allowed."""
    for name, number in numbers.items():
        if number < lowest:
            raise InputError(f"{name!r} must be {lowest} or more; got {number}.")


def require(module: str, *, extra: str) -> ModuleType:
    """Import a module; MissingExtraError names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(str(error.name), extra=extra) from error


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package that imports its names from ``places`` (PEP 562)."""

    def import_name(name: str) -> Any:  # noqa: ANN401
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, source = places[name].rpartition(".")
        value = getattr(importlib.import_module(module), source)
        vars(sys.modules[package])[name] = value
        return value

    return import_name


def reason_of(error: BaseException) -> str:
    """Describe an error on one line: the reason of the system, its first line, or its class."""
    text = str(getattr(error, "strerror", None) or error).strip()
    return " ".join(text.partition("\n")[0].split()).removesuffix(".") or type(error).__name__


def printable(text: str) -> str:
    """Show characters that steer a terminal, such as escapes and line ends, as codes."""
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


@contextmanager
def one_line(
    message: str, *causes: type[Exception], advice: str = "", kind: type[CondSimError] = InputError
) -> Iterator[None]:
    """Turn errors of other libraries inside the block into a message with their reason."""
    try:
        yield
    except CondSimError:
        raise
    except causes as error:
        raise kind(f"{message}: {reason_of(error)}.{advice and f' {advice}'}") from error


@contextmanager
def located(location: str) -> Iterator[None]:
    """Begin the messages of errors that condsim raises inside the block with a location."""
    try:
        yield
    except (InputError, ModelError) as error:
        raise type(error)(f"{location}: {error}") from None


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Turn a library missing from an import inside the block into MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", "condsim"):
            raise
        raise MissingExtraError.of(library, extra=extra) from error
