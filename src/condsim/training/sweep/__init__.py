"""Hyper-parameter search over recipes."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
