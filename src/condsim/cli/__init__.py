"""Command line of condsim: one file a command, thin callers of the library."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
