"""FDL: the two cosines of a pair at least as far apart as its labels."""

from __future__ import annotations

from torch import Tensor

from condsim.losses.base import LossOptions
from condsim.losses.functional_ccl import fdl_loss
from condsim.losses.paired import PairedLoss

__all__ = ["FDLLoss"]


class FDLLoss(PairedLoss):
    """``mean(max(gap + cos_neg - cos_pos, 0))`` over the pairs of the batch (CCL Eq. 5).

    Forward directional loss: Quad whose margin is the gap between the two labels. Half of ACL.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See ``functional_ccl.fdl_loss``."""
        return fdl_loss(high, low, gaps)
