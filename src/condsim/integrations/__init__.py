"""condsim where the data already are: tables, databases and the frameworks of search."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="{module}")
