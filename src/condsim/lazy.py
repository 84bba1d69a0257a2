"""The face of a package: its public names, listed in ``__init__.pyi``, imported on first use."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from condsim.errors import MissingExtraError

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]

_IMPORT = re.compile(r"^from (\.\w+) import (\([^)]*\)|.*)$", re.MULTILINE)


def face(package: str, *, extra: str | None = None) -> Face:
    """Makes ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562)."""
    # ``extra`` brings the libraries that its modules import; "{module}": each one of its name.
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {
        name: module
        for module, names in _IMPORT.findall(stub)
        for name in re.findall(r"(\w+) as \1\b", names)
    }

    def load(name: str) -> Any:  # noqa: ANN401  (the type is that of the name asked for)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(importlib.import_module(package + homes[name]), name)
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if extra is None or library in ("", "condsim"):
                raise
            own = extra.format(module=homes[name].removeprefix(".").replace("_", "-"))
            raise MissingExtraError.of(library, extra=own) from error

    return load, lambda: sorted(homes), sorted(homes)
