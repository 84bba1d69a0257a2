"""The errors condsim raises on purpose.

```
CondSimError
├── InputError         (also ValueError)    the caller's data, option or recipe breaks a rule
├── ModelError         (also ValueError)    a model folder is missing, damaged or of the wrong kind
├── BackendError       (also RuntimeError)  a language model or a server does not answer
│   └── BudgetError                         the requests or tokens that were allowed are used up
└── MissingExtraError  (also ImportError)   an optional library is not installed
```

Every message says what was wrong, the rule, what was given and what to do. The command line prints
it as one line on stderr and exits with status 2.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class CondSimError(Exception):
    """Base class of every error that condsim raises on purpose."""


class InputError(CondSimError, ValueError):
    """The caller's data, option or recipe breaks a stated rule."""


class ModelError(CondSimError, ValueError):
    """A model folder is missing, damaged or of the wrong kind."""


class BackendError(CondSimError, RuntimeError):
    """A language model, the server it is behind, or an annotation server does not answer.

    It also stands for an answer that cannot be read.

    Attributes:
        place: Which of the prompts it failed at, from 0; None if it is not one of them.
    """

    def __init__(self, message: str, *, place: int | None = None) -> None:
        """Takes the text.

        Args:
            message: What went wrong and what to do.
            place: See the attribute.
        """
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
    """Builds the error for a name that is not in a list of known names.

    Args:
        what: What the name stands for, such as ``"recipe key"``.
        known: The names that would have been accepted.

    Returns:
        An error whose text lists the near names, or all of them when none is near.
    """
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=3)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(names)}."
    )
    return InputError(f"Unknown {what} {given!r}. {hint}")


def require(module: str, *, extra: str) -> ModuleType:
    """Imports an optional module, or says which extra brings it.

    Args:
        module: Dotted name of the module, such as ``"sentence_transformers"``.
        extra: The condsim extra that installs it, such as ``"train"``.

    Raises:
        MissingExtraError: If the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(str(error.name), extra=extra) from error
