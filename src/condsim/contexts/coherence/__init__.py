"""The coherence model: does a sentence fit its context? (SSBC §3.2.1, Eq. 1)."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="contexts")
