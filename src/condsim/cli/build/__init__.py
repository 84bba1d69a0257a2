"""Commands of ``condsim build``: one file a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.cli.build.commands import app as app

__getattr__, __dir__, __all__ = face(__name__, {"commands": "app"})
