from .base import LossOptions as LossOptions, SimilarityLoss as SimilarityLoss, Targets as Targets
from .contrastive import (
    ACLLoss as ACLLoss,
    BCLLoss as BCLLoss,
    CMSELoss as CMSELoss,
    FDLLoss as FDLLoss,
    ProjectedLoss as ProjectedLoss,
    ProjectionHead as ProjectionHead,
    RDLLoss as RDLLoss,
    WACLLoss as WACLLoss,
)
from .functional import (
    acl_loss as acl_loss,
    bcl_loss as bcl_loss,
    classification_loss as classification_loss,
    correlation_loss as correlation_loss,
    cosent_loss as cosent_loss,
    fdl_loss as fdl_loss,
    high_low_pairs as high_low_pairs,
    listnet_loss as listnet_loss,
    mse_loss as mse_loss,
    negative_weights as negative_weights,
    pair_order_loss as pair_order_loss,
    quad_loss as quad_loss,
    ranking_loss as ranking_loss,
    ranknet_loss as ranknet_loss,
    rdl_loss as rdl_loss,
    tolerant_labels as tolerant_labels,
    w_acl_loss as w_acl_loss,
)
from .ranking import (
    CoSENTLoss as CoSENTLoss,
    ListNetLoss as ListNetLoss,
    PairOrderLoss as PairOrderLoss,
    RankingLoss as RankingLoss,
    RankNetLoss as RankNetLoss,
)
from .registry import OBJECTIVES as OBJECTIVES, Objective as Objective
from .similarity import (
    CorrelationLoss as CorrelationLoss,
    MSELoss as MSELoss,
    PairedLoss as PairedLoss,
    QuadLoss as QuadLoss,
    SoftmaxLoss as SoftmaxLoss,
    TripletLoss as TripletLoss,
)
from .weighted import (
    CCLLoss as CCLLoss,
    CrossEncoderSimilarityLoss as CrossEncoderSimilarityLoss,
    MixedLoss as MixedLoss,
    WeightedSumLoss as WeightedSumLoss,
    relation_loss as relation_loss,
    vector_loss as vector_loss,
)
