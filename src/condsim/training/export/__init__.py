"""Export to ONNX, and int8 quantisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.training.export.exporting import (
        SAMPLES as SAMPLES,
        export_onnx as export_onnx,
        samples_of as samples_of,
    )
    from condsim.training.export.quantize import quantize_static as quantize_static

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "exporting": "SAMPLES export_onnx samples_of",
        "quantize": "quantize_static",
    },
    extra="train",
)
