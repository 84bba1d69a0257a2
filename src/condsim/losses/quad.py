"""Quad: the sentence pair is closer under its higher-labelled condition, by a margin."""

from __future__ import annotations

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.errors import InputError
from condsim.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.losses.functional import high_low_pairs, quad_loss

__all__ = ["QuadLoss"]


class QuadLoss(SimilarityLoss):
    """``mean(max(λ + cos(n1, n2) - cos(p1, p2), 0))`` over the pairs of the batch (C-STS §4.1).

    p is the row of a sentence pair with the higher label, n the one with the lower; the two rows
    must share a batch and a pair id. Rows without a partner add nothing.
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
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See ``functional.quad_loss``; needs labels with pair ids.

        Raises:
            InputError: If the labels carry no pair ids.
        """
        if targets.pair_ids is None:
            raise InputError(
                "Quad compares two rows of one sentence pair, so labels must have shape (rows, 2): "
                "gold similarity and pair id. Got gold similarities only."
            )
        high, low = high_low_pairs(targets.gold, targets.pair_ids)
        return quad_loss(similarities[high], similarities[low], margin=options.margin)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"margin": self.options.margin}
