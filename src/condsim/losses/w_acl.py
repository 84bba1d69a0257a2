"""W-ACL: ACL that counts a pair by the gap between its labels."""

from __future__ import annotations

from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional_ccl import w_acl_loss
from condsim.losses.paired import PairedLoss

__all__ = ["WACLLoss"]


class WACLLoss(PairedLoss):
    """``mean(gap · |gap + cos_neg - cos_pos|)`` over the pairs of the batch (CCL Eq. 9).

    Weighted adaptive contrastive loss. All in the batch of one process: a pair whose rows are in
    different processes or accumulated batches is no pair (the sampler keeps pairs together).
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See ``functional_ccl.w_acl_loss``."""
        return w_acl_loss(high, low, gaps)
