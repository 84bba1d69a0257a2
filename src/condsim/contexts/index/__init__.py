"""The TF-IDF index over text chunks (SSBC §3.3)."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="contexts")
