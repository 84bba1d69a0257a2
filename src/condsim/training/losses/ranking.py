"""The ranking objectives: over all rows of a batch, a sentence pair's rows, or those of a list."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.training.losses.functional import (
    cosent_loss,
    listnet_loss,
    pair_order_loss,
    ranking_loss,
    ranknet_loss,
)
from condsim.training.losses.similarity import PairedLoss


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


class RankingLoss(SimilarityLoss):
    """``softplus(-scale · (cos_high - cos_low - margin))`` over fair comparisons.

    Compared are the rows of one sentence pair, which differ in the condition, and the rows of one
    list: other pairs of the same group under the same condition. So neither the condition alone
    nor the sentences alone tell the order. Not from the papers.
    """

    shown = ("scale", "ranking_margin")

    def __init__(
        self, model: SentenceTransformer, *, scale: float = 20.0, ranking_margin: float = 0.1
    ) -> None:
        """Makes the loss; ``scale`` is above 0 and the margin in [0, 2], or InputError."""
        super().__init__(model, LossOptions(scale=scale, ranking_margin=ranking_margin))

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See :func:`ranking_loss`.

        Raises:
            InputError: If the labels carry neither pair ids nor list ids.
        """
        ids = [one for one in (targets.pair_ids, targets.list_ids) if one is not None]
        if not ids:
            raise InputError(
                "RankingLoss compares rows of one sentence pair or list, so labels must have "
                "shape (rows, 2): gold similarity and pair id. Got gold similarities only."
            )
        return ranking_loss(
            similarities,
            targets.gold,
            ids,
            targets.weights,
            scale=options.scale,
            margin=options.ranking_margin,
        )
