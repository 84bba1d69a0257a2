"""A corpus on disk: sentences in order, and their tokens."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="contexts")
