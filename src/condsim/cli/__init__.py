"""Command line of condsim: one file a command, thin callers of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.cli.main import app as app, run as run

__getattr__, __dir__, __all__ = face(__name__, {"main": "app run"})
