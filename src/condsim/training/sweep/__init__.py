"""Hyper-parameter search over recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.training.sweep.result import (
        Correlations as Correlations,
        SeedResult as SeedResult,
        SweepResult as SweepResult,
        TrialResult as TrialResult,
        to_markdown as to_markdown,
    )
    from condsim.training.sweep.running import run_sweep as run_sweep
    from condsim.training.sweep.spec import (
        Range as Range,
        SweepSpec as SweepSpec,
        Values as Values,
        load_sweep as load_sweep,
        point_name as point_name,
        point_text as point_text,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "result": "Correlations SeedResult SweepResult TrialResult to_markdown",
        "running": "run_sweep",
        "spec": "Range SweepSpec Values load_sweep point_name point_text",
    },
    extra="train",
)
