"""Scorers: everything that turns ``(sentences1, sentences2, conditions)`` into scores.

`condsim.loading.load_scorer` finds the scorer of a model; the modules beside it hold one kind
each. Nothing is imported here, so that the light scorers do not wait for the heavy ones.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
