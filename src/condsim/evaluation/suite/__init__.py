"""The STS suite: many scorers on many data sets in one table (SSBC §4)."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
