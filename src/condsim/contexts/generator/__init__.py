"""The generators: how probable a sentence is in a context (SSBC §3.2.2, Eq. 2)."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="contexts")
