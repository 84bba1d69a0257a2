"""Encoders: how texts and conditions go into a model, and the three kinds of model.

``conditioning`` needs no extra, so any scorer may use it. The rest needs the ``train`` extra
and is imported on first use, so that a missing extra is one clear line.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="train")
