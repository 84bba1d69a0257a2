"""Mean squared error on the cosine: the regression objective of C-STS."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.losses.functional import mse_loss, tolerant_labels

__all__ = ["MSELoss"]


class MSELoss(SimilarityLoss):
    """``mean((cos(h1, h2) - gold)²)`` (C-STS §4.1).

    Example:
        >>> loss = MSELoss(model)  # doctest: +SKIP
        >>> SentenceTransformerTrainer(model, loss=loss, ...)  # doctest: +SKIP
    """

    def __init__(self, model: SentenceTransformer) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
        """
        super().__init__(model)

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See ``functional.mse_loss`` and ``functional.tolerant_labels``."""
        gold = tolerant_labels(targets.gold, similarities, tolerance=options.middle_tolerance)
        return mse_loss(similarities, gold)
