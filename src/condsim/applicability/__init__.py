"""Applicability: trains and measures the head that says whether a condition applies to two texts.

The head itself needs numpy alone (`condsim.scorers`); training it needs the ``train`` extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.applicability.fitting import (
        SAMPLE as SAMPLE,
        STRENGTH as STRENGTH,
        Linear as Linear,
        fit_head as fit_head,
        fit_linear as fit_linear,
        load_extra as load_extra,
    )
    from condsim.applicability.measuring import (
        ApplicabilityReport as ApplicabilityReport,
        measure_applicability as measure_applicability,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "fitting": "Linear SAMPLE STRENGTH fit_head fit_linear load_extra",
        "measuring": "ApplicabilityReport measure_applicability",
    },
    extra="train",
)
