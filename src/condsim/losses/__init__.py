"""Objectives: sentence-transformers losses over pure functions on tensors.

Needs the ``train`` extra. ``LOSSES`` maps the name used in a recipe to its class.
"""

from __future__ import annotations

from condsim.errors import require

# Before the modules below, which import both at their top: a missing extra is then one clear line.
require("torch", extra="train")
require("sentence_transformers", extra="train")

from condsim.losses.base import LossOptions, SimilarityLoss, Targets  # noqa: E402
from condsim.losses.correlation import CorrelationLoss  # noqa: E402
from condsim.losses.cosent import CoSENTLoss  # noqa: E402
from condsim.losses.cross_encoder import CrossEncoderSimilarityLoss  # noqa: E402
from condsim.losses.mse import MSELoss  # noqa: E402
from condsim.losses.quad import QuadLoss  # noqa: E402
from condsim.losses.weighted_sum import LOSSES, WeightedSumLoss  # noqa: E402

__all__ = [
    "LOSSES",
    "CoSENTLoss",
    "CorrelationLoss",
    "CrossEncoderSimilarityLoss",
    "LossOptions",
    "MSELoss",
    "QuadLoss",
    "SimilarityLoss",
    "Targets",
    "WeightedSumLoss",
]
