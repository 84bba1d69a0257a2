"""Baselines that need no trained encoder."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
