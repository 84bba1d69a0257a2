"""Objectives: sentence-transformers losses over pure functions on tensors.

Needs the ``train`` extra, but for ``OBJECTIVES``: every objective by its name in a recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.losses.base import (
        LossOptions as LossOptions,
        SimilarityLoss as SimilarityLoss,
        Targets as Targets,
    )
    from condsim.losses.contrastive import (
        ACLLoss as ACLLoss,
        BCLLoss as BCLLoss,
        CMSELoss as CMSELoss,
        FDLLoss as FDLLoss,
        ProjectedLoss as ProjectedLoss,
        ProjectionHead as ProjectionHead,
        RDLLoss as RDLLoss,
        WACLLoss as WACLLoss,
    )
    from condsim.losses.cross_encoder import (
        CrossEncoderSimilarityLoss as CrossEncoderSimilarityLoss,
    )
    from condsim.losses.functional import (
        acl_loss as acl_loss,
        bcl_loss as bcl_loss,
        correlation_loss as correlation_loss,
        cosent_loss as cosent_loss,
        fdl_loss as fdl_loss,
        high_low_pairs as high_low_pairs,
        listnet_loss as listnet_loss,
        mse_loss as mse_loss,
        negative_weights as negative_weights,
        pair_order_loss as pair_order_loss,
        quad_loss as quad_loss,
        ranknet_loss as ranknet_loss,
        rdl_loss as rdl_loss,
        tolerant_labels as tolerant_labels,
        w_acl_loss as w_acl_loss,
    )
    from condsim.losses.ranking import (
        CoSENTLoss as CoSENTLoss,
        ListNetLoss as ListNetLoss,
        PairOrderLoss as PairOrderLoss,
        RankNetLoss as RankNetLoss,
    )
    from condsim.losses.registry import OBJECTIVES as OBJECTIVES, Objective as Objective
    from condsim.losses.similarity import (
        CorrelationLoss as CorrelationLoss,
        MSELoss as MSELoss,
        PairedLoss as PairedLoss,
        QuadLoss as QuadLoss,
        SoftmaxLoss as SoftmaxLoss,
        TripletLoss as TripletLoss,
    )
    from condsim.losses.weighted import CCLLoss as CCLLoss, WeightedSumLoss as WeightedSumLoss

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "base": "LossOptions SimilarityLoss Targets",
        "contrastive": (
            "ACLLoss BCLLoss CMSELoss FDLLoss ProjectedLoss ProjectionHead RDLLoss WACLLoss"
        ),
        "cross_encoder": "CrossEncoderSimilarityLoss",
        "functional": (
            "acl_loss bcl_loss correlation_loss cosent_loss fdl_loss high_low_pairs listnet_loss "
            "mse_loss negative_weights pair_order_loss quad_loss ranknet_loss rdl_loss "
            "tolerant_labels w_acl_loss"
        ),
        "ranking": "CoSENTLoss ListNetLoss PairOrderLoss RankNetLoss",
        "registry": "OBJECTIVES Objective",
        "similarity": "CorrelationLoss MSELoss PairedLoss QuadLoss SoftmaxLoss TripletLoss",
        "weighted": "CCLLoss WeightedSumLoss",
    },
    extra="train",
)
