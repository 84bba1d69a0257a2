"""Pair order: the sentence pair is closer under its higher-labelled condition."""

from __future__ import annotations

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional_ranking import pair_order_loss
from condsim.losses.paired import PairedLoss

__all__ = ["PairOrderLoss"]


class PairOrderLoss(PairedLoss):
    """``mean(log(1 + exp(scale · (cos_low - cos_high))))`` over the pairs of the batch.

    RankNet on what pair accuracy counts: the two conditions of one sentence pair.
    """

    def __init__(self, model: SentenceTransformer, *, scale: float = 20.0) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
            scale: Inverse temperature, above 0.

        Raises:
            InputError: If the scale is not above 0.
        """
        super().__init__(model, LossOptions(scale=scale))

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See ``functional_ranking.pair_order_loss``; the gap between labels does not matter."""
        return pair_order_loss(high, low, scale=options.scale)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"scale": self.options.scale}
