"""Candidate sentence pairs: items, embeddings, near neighbours, filters (C-STS §2.2.1, A.2)."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
