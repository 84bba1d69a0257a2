"""BCL: a row's sentence 1 nearer to its own second view than to the sentences 2 of the batch."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.errors import InputError
from condsim.losses.base import LossOptions
from condsim.losses.functional_ccl import bcl_loss
from condsim.losses.projected import ProjectedBatch, ProjectedLoss

__all__ = ["BCLLoss"]


class BCLLoss(ProjectedLoss):
    """InfoNCE in the projected space with label-weighted negatives (CCL Eq. 10-12).

    The positive of a row is its own sentence 1 under the same condition and a second dropout, so
    the model needs dropout. Its negatives are the sentences 2 of *all* rows of the batch, both
    conditions of each pair: the other rows' with weight 1, its own with ``1 - label``, or 0 from
    label σ on. The batch is what one process holds in one step: gradient accumulation and more
    processes add batches, not negatives.
    """

    needs_view: ClassVar[bool] = True

    def __init__(self, model: SentenceTransformer, *, tau: float = 5.0, sigma: float = 0.5) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
            tau: τ, above 0; divides the cosines.
            sigma: σ in [0, 1], the label from which a row's own sentence 2 is no negative.

        Raises:
            InputError: If τ or σ is out of its range.
        """
        super().__init__(model, LossOptions(tau=tau, sigma=sigma))

    @staticmethod
    def compute(batch: ProjectedBatch, options: LossOptions) -> Tensor:
        """See ``functional_ccl.bcl_loss``.

        Raises:
            InputError: If the batch has no second view.
        """
        if batch.view is None:
            raise InputError("BCL needs a second view of sentence 1; project the batch with one.")
        first = F.normalize(batch.first, dim=-1)  # (rows, dim)
        positives = (first * F.normalize(batch.view, dim=-1)).sum(dim=-1)  # (rows,)
        with torch.autocast(first.device.type, enabled=False):
            negatives = first @ F.normalize(batch.second, dim=-1).T  # (rows, rows)
        return bcl_loss(
            positives, negatives, batch.targets.gold, tau=options.tau, sigma=options.sigma
        )

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"tau": self.options.tau, "sigma": self.options.sigma}
