"""Conditional rows from any labelled table: each labelled attribute becomes a condition."""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
