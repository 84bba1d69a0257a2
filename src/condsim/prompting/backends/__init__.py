"""Back ends that answer prompts: a local model, or a server."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="llm")
