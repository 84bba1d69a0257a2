"""Adapting a bi-encoder to criteria of one's own, without losing the rest."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
