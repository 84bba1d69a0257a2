"""The ranking objectives: CoSENT, RankNet and ListNet over all rows of a batch, and pair order."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.losses.functional import cosent_loss, listnet_loss, pair_order_loss, ranknet_loss
from condsim.losses.similarity import PairedLoss


class _RankingLoss(SimilarityLoss):
    """Base of the objectives that have an inverse temperature and no other number."""

    shown = ("scale",)

    def __init__(self, model: SentenceTransformer, *, scale: float = 20.0) -> None:
        super().__init__(model, LossOptions(scale=scale))


class CoSENTLoss(_RankingLoss):
    """``log(1 + Σ exp(scale · (cos_j - cos_i)))`` over the rows with gold_i > gold_j.

    sentence-transformers' ``CoSENTLoss``, with labels that may carry a pair id.

    References:
        Huang et al., CoSENT: Consistent Sentence Embedding via Similarity Ranking, 2024.
    """

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See :func:`cosent_loss`."""
        return cosent_loss(similarities, targets.gold, scale=options.scale)


class RankNetLoss(_RankingLoss):
    """``mean(log(1 + exp(scale · (cos_j - cos_i))))`` over the rows with gold_i > gold_j.

    References:
        Burges et al., Learning to Rank using Gradient Descent, 2005.
    """

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See :func:`ranknet_loss`."""
        return ranknet_loss(similarities, targets.gold, scale=options.scale)


class ListNetLoss(_RankingLoss):
    """``KL(softmax(scale · gold) || softmax(scale · cos))`` over the rows of the batch.

    A scale of about 5 suits it: at 20 only the rows of the highest label count.

    References:
        Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach, 2007.
    """

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See :func:`listnet_loss`."""
        return listnet_loss(similarities, targets.gold, scale=options.scale)


class PairOrderLoss(_RankingLoss, PairedLoss):
    """``mean(log(1 + exp(scale · (cos_low - cos_high))))`` over the pairs of the batch.

    RankNet on what pair accuracy counts: the two conditions of one sentence pair.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See :func:`pair_order_loss`; the gap between the labels does not matter."""
        return pair_order_loss(high, low, scale=options.scale)
