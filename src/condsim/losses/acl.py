"""ACL: the two cosines of a pair exactly as far apart as its labels."""

from __future__ import annotations

from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional_ccl import acl_loss
from condsim.losses.paired import PairedLoss

__all__ = ["ACLLoss"]


class ACLLoss(PairedLoss):
    """``mean(|gap + cos_neg - cos_pos|)`` over the pairs of the batch (CCL Eq. 7 and 8).

    Adaptive contrastive loss: FDL + RDL, whichever direction a pair needs.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See ``functional_ccl.acl_loss``."""
        return acl_loss(high, low, gaps)
