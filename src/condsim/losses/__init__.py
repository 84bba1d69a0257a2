"""Objectives: sentence-transformers losses over pure functions on tensors.

Needs the ``train`` extra. ``LOSSES`` maps the name used in a recipe to its class, and
``PROJECTED_LOSSES`` and ``LONE_LOSSES`` do so for objectives of other inputs.
"""

from __future__ import annotations

from condsim.errors import require

# Before the modules below, which import both at their top: a missing extra is then one clear line.
require("torch", extra="train")
require("sentence_transformers", extra="train")

from condsim.losses.acl import ACLLoss  # noqa: E402
from condsim.losses.base import LossOptions, SimilarityLoss, Targets  # noqa: E402
from condsim.losses.bcl import BCLLoss  # noqa: E402
from condsim.losses.c_mse import CMSELoss  # noqa: E402
from condsim.losses.ccl import CCLLoss  # noqa: E402
from condsim.losses.correlation import CorrelationLoss  # noqa: E402
from condsim.losses.cross_encoder import CrossEncoderSimilarityLoss  # noqa: E402
from condsim.losses.fdl import FDLLoss  # noqa: E402
from condsim.losses.mse import MSELoss  # noqa: E402
from condsim.losses.paired import PairedLoss  # noqa: E402
from condsim.losses.projected import ProjectedLoss  # noqa: E402
from condsim.losses.projection import ProjectionHead  # noqa: E402
from condsim.losses.quad import QuadLoss  # noqa: E402
from condsim.losses.ranking import (  # noqa: E402
    CoSENTLoss,
    ListNetLoss,
    PairOrderLoss,
    RankNetLoss,
)
from condsim.losses.rdl import RDLLoss  # noqa: E402
from condsim.losses.softmax import SoftmaxLoss  # noqa: E402
from condsim.losses.triplet import TripletLoss  # noqa: E402
from condsim.losses.w_acl import WACLLoss  # noqa: E402
from condsim.losses.weighted_sum import (  # noqa: E402
    LOSSES,
    PROJECTED_LOSSES,
    WeightedSumLoss,
)

LONE_LOSSES: dict[str, type[SoftmaxLoss] | type[TripletLoss]] = {
    "softmax": SoftmaxLoss,
    "triplet": TripletLoss,
}
"""The objectives that take data of their own and stand alone, by the name that a recipe uses."""

__all__ = [
    "LONE_LOSSES",
    "LOSSES",
    "PROJECTED_LOSSES",
    "ACLLoss",
    "BCLLoss",
    "CCLLoss",
    "CMSELoss",
    "CoSENTLoss",
    "CorrelationLoss",
    "CrossEncoderSimilarityLoss",
    "FDLLoss",
    "ListNetLoss",
    "LossOptions",
    "MSELoss",
    "PairOrderLoss",
    "PairedLoss",
    "ProjectedLoss",
    "ProjectionHead",
    "QuadLoss",
    "RDLLoss",
    "RankNetLoss",
    "SimilarityLoss",
    "SoftmaxLoss",
    "Targets",
    "TripletLoss",
    "WACLLoss",
    "WeightedSumLoss",
]
