"""C-MSE: mean squared error on the cosine in the projected space."""

from __future__ import annotations

import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional import mse_loss
from condsim.losses.projected import ProjectedBatch, ProjectedLoss

__all__ = ["CMSELoss"]


class CMSELoss(ProjectedLoss):
    """``mean((cos(g(h1), g(h2)) - gold)²)`` (CCL Eq. 3, its fourth term).

    The paper names the term and does not write it out; this is what READING.md makes of it.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
        """
        super().__init__(model)

    @staticmethod
    def compute(batch: ProjectedBatch, options: LossOptions) -> Tensor:
        """See ``functional.mse_loss``."""
        similarities = F.cosine_similarity(batch.first, batch.second, dim=-1)  # (rows,)
        return mse_loss(similarities, batch.targets.gold)

    def get_config_dict(self) -> dict[str, object]:
        """Settings shown on the model card."""
        return {}
