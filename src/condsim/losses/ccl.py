"""CCL: the four losses of conditional contrastive learning together."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer

from condsim.losses.registry import WeightedSumLoss


class CCLLoss(WeightedSumLoss):
    """``λ1 W-ACL + λ2 BCL + λ3 MSE + λ4 C-MSE`` (CCL Eq. 3; all λ are 1 in §4.1).

    In-batch negatives of BCL are those of one process and one step: neither gradient accumulation
    nor more processes add to them. W-ACL takes the pairs whose two rows share that batch.

    Example:
        >>> CCLLoss(model, tau=3.0, sigma=0.75)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        w_acl: float = 1.0,
        bcl: float = 1.0,
        mse: float = 1.0,
        c_mse: float = 1.0,
        tau: float = 5.0,
        sigma: float = 0.5,
    ) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train, a bi- or a tri-encoder.
            w_acl: λ1, at least 0. A term of weight 0 is not computed.
            bcl: λ2, at least 0. Above 0 it costs a second forward over sentence 1.
            mse: λ3, at least 0.
            c_mse: λ4, at least 0.
            tau: τ of BCL, above 0.
            sigma: σ of BCL in [0, 1].

        Raises:
            InputError: If a weight is negative or all are 0, or if τ or σ is out of its range.
        """
        weights = {"w-acl": w_acl, "bcl": bcl, "mse": mse, "c-mse": c_mse}
        super().__init__(model, weights, tau=tau, sigma=sigma)
