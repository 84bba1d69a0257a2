"""Search, cluster and deduplicate a collection under a condition."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="search")
