"""RDL: the two cosines of a pair at most as far apart as its labels."""

from __future__ import annotations

from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional_ccl import rdl_loss
from condsim.losses.paired import PairedLoss

__all__ = ["RDLLoss"]


class RDLLoss(PairedLoss):
    """``mean(max(cos_pos - cos_neg - gap, 0))`` over the pairs of the batch (CCL Eq. 6).

    Reverse directional loss: the other half of ACL.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See ``functional_ccl.rdl_loss``."""
        return rdl_loss(high, low, gaps)
