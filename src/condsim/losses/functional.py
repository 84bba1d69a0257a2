"""The mathematics of the objectives: pure functions on tensors.

Every function computes in float32 whatever the dtype of its input, so it is safe under float16 and
bfloat16 autocast, and returns a float32 scalar. A term with nothing to compare (no pairs in the
batch, a constant batch) is a constant that still has a graph, so ``backward`` works and adds zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

from condsim.errors import InputError

__all__ = [
    "correlation_loss",
    "high_low_pairs",
    "mse_loss",
    "pair_vectors",
    "quad_loss",
    "row_vectors",
    "tolerant_labels",
]

_MIDDLE = 0.5  # gold of the label 3


def mse_loss(similarities: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error between similarity and label (C-STS §4.1).

    Args:
        similarities: Predicted similarity of each row, ``(rows,)``.
        labels: Gold similarity of each row in [0, 1], ``(rows,)``.

    Returns:
        ``mean((similarity - label)²)``, a scalar.

    Raises:
        InputError: If the shapes are not two equal, non-empty vectors.
    """
    similarities, labels = row_vectors("mse_loss", similarities, labels)
    return (similarities - labels).square().mean()


def quad_loss(high: Tensor, low: Tensor, *, margin: float = 1.0) -> Tensor:
    """Quadruplet margin loss, ``max(λ + cos(n1, n2) - cos(p1, p2), 0)`` (C-STS §4.1).

    The paper does not give λ; 1 is the value stated by CCL (see READING.md).

    Args:
        high: Similarity of each sentence pair under its higher-labelled condition, ``(pairs,)``.
        low: Similarity of the same pairs under the lower-labelled condition, ``(pairs,)``.
        margin: λ, at least 0.

    Returns:
        The mean over pairs, a scalar; 0 when there are none.

    Raises:
        InputError: If the shapes are not two equal vectors.
    """
    high, low = pair_vectors("quad_loss", high, low)
    if high.numel() == 0:
        return high.sum() + low.sum()
    return torch.relu(margin + low - high).mean()


def correlation_loss(similarities: Tensor, labels: Tensor, *, eps: float = 1e-12) -> Tensor:
    """One minus the Pearson correlation of similarities and labels over the batch.

    Args:
        similarities: Predicted similarity of each row, ``(rows,)``.
        labels: Gold similarity of each row, ``(rows,)``.
        eps: Variance at or below which a vector counts as constant. A batch where either is
            constant (one row always is) has no correlation: the loss is 1 and its gradient 0.

    Returns:
        A scalar in [0, 2].

    Raises:
        InputError: If the shapes are not two equal, non-empty vectors.
    """
    similarities, labels = row_vectors("correlation_loss", similarities, labels)
    x = _centred(similarities)
    y = _centred(labels)
    variance_x, variance_y = x.square().mean(), y.square().mean()
    varies = (variance_x > eps) & (variance_y > eps)
    # The inner `where` keeps sqrt away from 0, whose infinite slope would turn the unused branch
    # of the outer one into NaN gradients.
    scale = torch.where(varies, variance_x * variance_y, torch.ones_like(variance_x)).sqrt()
    pearson = torch.where(varies, (x * y).mean() / scale, torch.zeros_like(scale))
    return 1.0 - pearson


def tolerant_labels(labels: Tensor, similarities: Tensor, *, tolerance: float) -> Tensor:
    """Lets rows labelled 3 keep what is predicted, within bounds: smoothing of a label overused.

    Annotators who are unsure say 3, and annotating language models more so. Such a label is taken
    for all of ``[0.5 - tolerance, 0.5 + tolerance]``, and replaced by the value there that is
    nearest to the prediction. Under MSE that is the squared ε-insensitive loss of support vector
    regression (Vapnik, 1995) for these rows. Not for ranking: equal labels would get an order.

    Args:
        labels: Gold similarity of each row in [0, 1], ``(rows,)``; a label of 3 is 0.5.
        similarities: Predicted similarity of each row, ``(rows,)``; no gradient goes through it.
        tolerance: In [0, 0.5]; 0 changes nothing, 0.25 reaches from the label 2 to 4.

    Returns:
        The labels, ``(rows,)`` float32, changed where they are 0.5.
    """
    nearest = similarities.detach().float().clamp(_MIDDLE - tolerance, _MIDDLE + tolerance)
    return torch.where(labels == _MIDDLE, nearest, labels.float())


def high_low_pairs(labels: Tensor, pair_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the rows of a batch that are one sentence pair under two conditions.

    Args:
        labels: Gold similarity of each row, ``(rows,)``.
        pair_ids: Integer id of each row's sentence pair, ``(rows,)``; negative means no partner.

    Returns:
        Row numbers ``(high, low)``, each ``(pairs,)``: every combination of two rows with the same
        id and different labels, the higher label first.

    Raises:
        InputError: If the shapes are not two equal vectors.
    """
    if labels.ndim != 1 or labels.shape != pair_ids.shape:
        raise _shape_error("high_low_pairs", "labels", labels, "pair_ids", pair_ids)
    same = (pair_ids.unsqueeze(1) == pair_ids.unsqueeze(0)) & (pair_ids >= 0).unsqueeze(1)
    high, low = torch.nonzero(
        same & (labels.unsqueeze(1) > labels.unsqueeze(0)), as_tuple=True
    )  # (pairs,), (pairs,)
    return high, low


def _centred(values: Tensor) -> Tensor:
    """Subtracts the mean, exactly zero for a constant vector thanks to the shift beforehand."""
    shifted = values - values[0].detach()
    return shifted - shifted.mean()


def row_vectors(function: str, similarities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Checks two equal, non-empty vectors and returns them in float32."""
    if similarities.ndim != 1 or similarities.shape != labels.shape or similarities.numel() == 0:
        raise _shape_error(function, "similarities", similarities, "labels", labels)
    return similarities.float(), labels.float()


def pair_vectors(function: str, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Checks two equal vectors, which may be empty, and returns them in float32."""
    if high.ndim != 1 or high.shape != low.shape:
        raise _shape_error(function, "high", high, "low", low)
    return high.float(), low.float()


def _shape_error(
    function: str, name1: str, first: Tensor, name2: str, second: Tensor
) -> InputError:
    return InputError(
        f"{function} takes {name1} and {name2} as vectors of one length. "
        f"Got shapes {tuple(first.shape)} and {tuple(second.shape)} instead."
    )
