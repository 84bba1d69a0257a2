"""Hyper-parameter search over recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.training.sweep.result import to_markdown as to_markdown
    from condsim.training.sweep.running import run_sweep as run_sweep
    from condsim.training.sweep.space import (
        Range as Range,
        Values as Values,
        point_name as point_name,
        point_text as point_text,
    )
    from condsim.training.sweep.spec import SweepSpec as SweepSpec, load_sweep as load_sweep

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "result": "to_markdown",
        "running": "run_sweep",
        "space": "Range Values point_name point_text",
        "spec": "SweepSpec load_sweep",
    },
    extra="train",
)
