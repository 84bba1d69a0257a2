"""The bridge to mteb: condsim models on its tasks, and C-STS as a task of its own format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.mteb_bridge.csts import (
        CSTS as CSTS,
        AbsTaskConditionalSTS as AbsTaskConditionalSTS,
    )
    from condsim.mteb_bridge.encoder import MtebEncoder as MtebEncoder
    from condsim.mteb_bridge.local_data import local_task as local_task

__getattr__, __dir__, __all__ = face(
    __name__,
    {"csts": "AbsTaskConditionalSTS CSTS", "encoder": "MtebEncoder", "local_data": "local_task"},
    extra="mteb",
)
