"""The errors condsim raises on purpose; each says what was wrong, the rule, and what to do."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType


class CondSimError(Exception):
    """Base class of every error that condsim raises on purpose."""


class InputError(CondSimError, ValueError):
    """The caller's data, option or recipe breaks a stated rule."""


class ModelError(CondSimError, ValueError):
    """A model folder is missing, damaged or of the wrong kind."""


class BackendError(CondSimError, RuntimeError):
    """A language model or a server does not answer, or its answer cannot be read."""

    def __init__(self, message: str, *, place: int | None = None) -> None:
        """Takes the text, and which prompt it failed at, from 0; None if at none of them."""
        super().__init__(message)
        self.place = place


class BudgetError(BackendError):
    """The requests or tokens that a run was allowed are used up; what was answered is kept."""


class MissingExtraError(CondSimError, ImportError):
    """An optional library is not installed."""

    @classmethod
    def of(cls, library: str, *, extra: str) -> MissingExtraError:
        """The error for a library that an extra brings, with the line that installs it."""
        return cls(f"This needs {library}, which is not installed: pip install 'condsim[{extra}]'")


def unknown_name(what: str, given: str, known: Iterable[str]) -> InputError:
    """The error for an unknown name of ``what``; lists the near ones, or all when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=3)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(names)}."
    )
    return InputError(f"Unknown {what} {given!r}. {hint}")


def require(module: str, *, extra: str) -> ModuleType:
    """Imports a module, or raises MissingExtraError, which says which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(str(error.name), extra=extra) from error


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
