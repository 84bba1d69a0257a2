"""Objectives: sentence-transformers losses over pure functions on tensors.

Needs the ``train`` extra, but for ``OBJECTIVES``: every objective by its name in a recipe.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
