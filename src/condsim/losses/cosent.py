"""CoSENT: every two rows of the batch in the order of their labels."""

from __future__ import annotations

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.losses.functional import cosent_loss

__all__ = ["CoSENTLoss"]


class CoSENTLoss(SimilarityLoss):
    """``log(1 + Σ exp(scale · (cos_j - cos_i)))`` over the rows with gold_i > gold_j.

    The same number as sentence-transformers' ``CoSENTLoss``, with one forward for both columns and
    labels that may carry a pair id.

    References:
        Huang et al., CoSENT: Consistent Sentence Embedding via Similarity Ranking, 2024.
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
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See ``functional.cosent_loss``."""
        return cosent_loss(similarities, targets.gold, scale=options.scale)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"scale": self.options.scale}
