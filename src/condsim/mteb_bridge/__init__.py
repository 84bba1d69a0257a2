"""The bridge to mteb: condsim models on its tasks, and C-STS as a task of its own format."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="mteb")
