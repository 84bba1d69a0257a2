"""From ratings to a data set: labels, agreement, splits, leakage, card."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
