"""Export to ONNX, and int8 quantisation."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
