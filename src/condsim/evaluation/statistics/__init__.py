"""Correlations, accuracies, intervals and p-values."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
