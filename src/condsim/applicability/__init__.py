"""Applicability: trains and measures the head that says whether a condition applies to two texts.

The head itself needs numpy alone (`condsim.scorers`); training it needs the ``train`` extra.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
