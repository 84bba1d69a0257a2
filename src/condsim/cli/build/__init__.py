"""Commands of ``condsim build``: one file a step."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
