"""An HTTP server for scores, embeddings and reranking under a condition."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="serve")
