"""The harvest: sentence pairs with origin scores, in resumable shards (SSBC §3.4)."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="contexts")
