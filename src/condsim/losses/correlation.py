"""Correlation: what the benchmark measures, as an objective."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.losses.functional import correlation_loss, tolerant_labels

__all__ = ["CorrelationLoss"]


class CorrelationLoss(SimilarityLoss):
    """One minus the Pearson correlation of cosine and gold over the batch.

    Not from the papers. It asks for the right order and spacing but not for the level, so the
    encoder need not push unrelated texts to a cosine of 0. The larger the batch, the better the
    estimate; a batch of equal labels adds nothing.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
        """
        super().__init__(model)

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See ``functional.correlation_loss`` and ``functional.tolerant_labels``."""
        gold = tolerant_labels(targets.gold, similarities, tolerance=options.middle_tolerance)
        return correlation_loss(similarities, gold)
