"""Training: a recipe goes in, a model folder with its card and report comes out.

Needs the ``train`` extra. The trainer, its checkpoints and multi-process training are those of
sentence-transformers and transformers; what is here is the recipe, how rows are batched, how the
best epoch is chosen, and what the finished folder holds.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
