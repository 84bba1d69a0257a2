"""The face of a package: its public names, each imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from condsim.errors import MissingExtraError

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def face(package: str, modules: Mapping[str, str], *, extra: str | None = None) -> Face:
    """Makes ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562).

    Args:
        package: The package's ``__name__``.
        modules: Public names, separated by spaces, by the module below ``package`` that holds them.
        extra: The condsim extra that brings the libraries which these modules import.

    Returns:
        The three, in that order.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:  # noqa: ANN401  (the type is that of the name asked for)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if extra is None or library in ("", "condsim"):
                raise
            raise MissingExtraError.of(library, extra=extra) from error
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(homes), sorted(homes)
