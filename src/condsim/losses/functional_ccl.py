"""The mathematics of conditional contrastive learning (CCL): pure functions on tensors.

As in ``functional``: float32 whatever the input's dtype, a float32 scalar out, and a term with
nothing to compare is a constant that still has a graph.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from condsim.errors import InputError

__all__ = [
    "acl_loss",
    "bcl_loss",
    "fdl_loss",
    "negative_weights",
    "rdl_loss",
    "w_acl_loss",
]


def fdl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Forward directional loss, ``max(gap + cos_neg - cos_pos, 0)`` (CCL Eq. 5).

    Quad with the labels' own gap for a margin: it stops pushing the two apart once they are as far
    from each other as the labels are.

    Args:
        high: Similarity of each sentence pair under its higher-labelled condition, ``(pairs,)``.
        low: Similarity of the same pairs under the lower-labelled condition, ``(pairs,)``.
        gaps: ``l_pos - l_neg`` of each pair in [0, 1], ``(pairs,)``.

    Returns:
        The mean over pairs, a scalar; 0 when there are none.

    Raises:
        InputError: If the shapes are not three equal vectors.
    """
    return _mean(torch.relu(_excess("fdl_loss", high, low, gaps)))


def rdl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Reverse directional loss, ``max(cos_pos - cos_neg - gap, 0)`` (CCL Eq. 6).

    Pulls the two together where they are further apart than their labels.

    Args:
        high: As in :func:`fdl_loss`.
        low: As in :func:`fdl_loss`.
        gaps: As in :func:`fdl_loss`.

    Returns:
        The mean over pairs, a scalar; 0 when there are none.

    Raises:
        InputError: If the shapes are not three equal vectors.
    """
    return _mean(torch.relu(-_excess("rdl_loss", high, low, gaps)))


def acl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Adaptive contrastive loss, ``|gap + cos_neg - cos_pos|`` = FDL + RDL (CCL Eq. 8).

    Args:
        high: As in :func:`fdl_loss`.
        low: As in :func:`fdl_loss`.
        gaps: As in :func:`fdl_loss`.

    Returns:
        The mean over pairs, a scalar; 0 when there are none.

    Raises:
        InputError: If the shapes are not three equal vectors.
    """
    return _mean(_excess("acl_loss", high, low, gaps).abs())


def w_acl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Weighted adaptive contrastive loss, ``gap · |gap + cos_neg - cos_pos|`` (CCL Eq. 9).

    The order of the two cosines is that of Eq. 8 and 9; the prose around them swaps it.

    Args:
        high: As in :func:`fdl_loss`.
        low: As in :func:`fdl_loss`.
        gaps: As in :func:`fdl_loss`.

    Returns:
        The mean over pairs (not over the sum of the weights), a scalar; 0 when there are none.

    Raises:
        InputError: If the shapes are not three equal vectors.
    """
    return _mean(gaps.float() * _excess("w_acl_loss", high, low, gaps).abs())


def negative_weights(labels: Tensor, *, sigma: float) -> Tensor:
    """Weights α of the negatives (CCL Eq. 11).

    Args:
        labels: Gold similarity of each row in [0, 1], ``(rows,)``.
        sigma: σ in [0, 1]. The two sentences of a row with label ≥ σ are a false negative.

    Returns:
        α of sentence 1 of row i against sentence 2 of row j, ``(rows, rows)`` float32: off the
        diagonal 1; on it 0 for a false negative, else ``1 - label`` (a hard negative).

    Raises:
        InputError: If the labels are no vector or σ is out of its range.
    """
    if labels.ndim != 1:
        raise InputError(f"Labels must be a vector. Got shape {tuple(labels.shape)} instead.")
    if not 0 <= sigma <= 1:  # also catches NaN
        raise InputError(f"σ of BCL must be in [0, 1]. Got {sigma} instead.")
    labels = labels.float()
    weights = torch.ones(len(labels), len(labels), device=labels.device)  # (rows, rows)
    own = torch.where(labels >= sigma, torch.zeros_like(labels), 1.0 - labels)  # (rows,)
    return weights.diagonal_scatter(own)


def bcl_loss(
    positives: Tensor, negatives: Tensor, labels: Tensor, *, tau: float, sigma: float
) -> Tensor:
    """Balanced contrastive loss: InfoNCE with label-weighted negatives (CCL Eq. 10-12).

    ``mean over i of -log(e^(cos_ii/τ) / (e^(cos_ii/τ) + Σ_j α_ij e^(cos_ij/τ)))``. The mean of
    Eq. 12 is taken, since the log of Eq. 10 stands outside its sum (READING.md).

    Args:
        positives: Cosine of sentence 1 of each row with itself under a second dropout, ``(rows,)``.
        negatives: Cosine of sentence 1 of row i with sentence 2 of row j, ``(rows, rows)``.
        labels: Gold similarity of each row in [0, 1], ``(rows,)``.
        tau: τ, above 0; divides the cosines (the paper has 3 to 10).
        sigma: σ in [0, 1], see :func:`negative_weights`.

    Returns:
        A scalar, at least 0.

    Raises:
        InputError: If the shapes do not fit each other, there is no row, or τ or σ is out of its
            range.
    """
    rows = positives.numel()
    if positives.ndim != 1 or not rows or negatives.shape != (rows, rows) or len(labels) != rows:
        raise InputError(
            "bcl_loss takes positives (rows,), negatives (rows, rows) and labels (rows,). "
            f"Got shapes {tuple(positives.shape)}, {tuple(negatives.shape)} and "
            f"{tuple(labels.shape)} instead."
        )
    if not (math.isfinite(tau) and tau > 0):
        raise InputError(f"τ of BCL must be above 0. Got {tau} instead.")
    own = positives.float() / tau  # (rows,)
    weights = negative_weights(labels, sigma=sigma)  # (rows, rows)
    others = negatives.float() / tau + weights.log()  # (rows, rows), -inf where the weight is 0
    return (torch.logsumexp(torch.cat([own.unsqueeze(1), others], dim=1), dim=1) - own).mean()


def _excess(function: str, high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """``gap + cos_neg - cos_pos`` of each pair in float32, ``(pairs,)``."""
    if high.ndim != 1 or high.shape != low.shape or high.shape != gaps.shape:
        raise InputError(
            f"{function} takes high, low and gaps as vectors of one length. Got shapes "
            f"{tuple(high.shape)}, {tuple(low.shape)} and {tuple(gaps.shape)} instead."
        )
    return gaps.float() + low.float() - high.float()


def _mean(values: Tensor) -> Tensor:
    """The mean; 0 with a graph where there is nothing."""
    return values.mean() if values.numel() else values.sum()
