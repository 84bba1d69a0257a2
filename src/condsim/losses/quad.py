"""Quad: the sentence pair is closer under its higher-labelled condition, by a margin."""

from __future__ import annotations

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional import quad_loss
from condsim.losses.paired import PairedLoss

__all__ = ["QuadLoss"]


class QuadLoss(PairedLoss):
    """``mean(max(λ + cos(n1, n2) - cos(p1, p2), 0))`` over the pairs of the batch (C-STS §4.1).

    p is the row of a sentence pair with the higher label, n the one with the lower.
    """

    def __init__(self, model: SentenceTransformer, *, margin: float = 1.0) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
            margin: λ, at least 0.

        Raises:
            InputError: If the margin is negative.
        """
        super().__init__(model, LossOptions(margin=margin))

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See ``functional.quad_loss``; the gap between the labels does not matter."""
        return quad_loss(high, low, margin=options.margin)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"margin": self.options.margin}
