"""The mathematics of the ranking objectives: pure functions on tensors.

As in ``functional``: float32 whatever the input's dtype, a float32 scalar out, and a term with
nothing to compare is a constant that still has a graph.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from condsim.losses.functional import pair_vectors, row_vectors

__all__ = ["cosent_loss", "listnet_loss", "pair_order_loss", "ranknet_loss"]


def cosent_loss(similarities: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """Ranking loss over all pairs of rows whose labels differ (CoSENT, Huang et al., 2024).

    ``log(1 + Σ exp(scale · (s_j - s_i)))`` over the rows i, j with label_i > label_j: the value
    of sentence-transformers' ``CoSENTLoss``, here on similarities rather than on a model.

    Args:
        similarities: Predicted similarity of each row, ``(rows,)``.
        labels: Gold similarity of each row, ``(rows,)``; only the order matters.
        scale: Inverse temperature, above 0.

    Returns:
        A scalar, at least 0; 0 when all labels are equal.

    Raises:
        InputError: If the shapes are not two equal, non-empty vectors.
    """
    similarities, labels = row_vectors("cosent_loss", similarities, labels)
    excess = scale * (similarities.unsqueeze(0) - similarities.unsqueeze(1))  # [i, j] = s_j - s_i
    ordered = labels.unsqueeze(1) > labels.unsqueeze(0)  # row i is to score above row j
    return torch.logsumexp(torch.cat([similarities.new_zeros(1), excess[ordered]]), dim=0)


def ranknet_loss(similarities: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """Logistic ranking loss over all pairs of rows whose labels differ (RankNet, Burges, 2005).

    ``mean(log(1 + exp(scale · (s_j - s_i))))`` over the rows i, j with label_i > label_j. CoSENT
    takes the logarithm of their sum, so the worst pair rules it; here each counts by itself.

    Args:
        similarities: Predicted similarity of each row, ``(rows,)``.
        labels: Gold similarity of each row, ``(rows,)``; only the order matters.
        scale: Inverse temperature, above 0.

    Returns:
        A scalar, at least 0; 0 when all labels are equal.

    Raises:
        InputError: If the shapes are not two equal, non-empty vectors.
    """
    similarities, labels = row_vectors("ranknet_loss", similarities, labels)
    higher, lower = torch.nonzero(labels.unsqueeze(1) > labels.unsqueeze(0), as_tuple=True)
    return pair_order_loss(similarities[higher], similarities[lower], scale=scale)


def pair_order_loss(high: Tensor, low: Tensor, *, scale: float = 20.0) -> Tensor:
    """Logistic loss on the order of a sentence pair's two conditions.

    ``mean(log(1 + exp(scale · (s_low - s_high))))``: RankNet (Burges, 2005) on these two. Quad
    pushes with one force up to its margin; this pushes less and less the wider the gap.

    Args:
        high: Similarity of each sentence pair under its higher-labelled condition, ``(pairs,)``.
        low: Similarity of the same pairs under the lower-labelled condition, ``(pairs,)``.
        scale: Inverse temperature, above 0.

    Returns:
        The mean over pairs, a scalar; 0 when there are none.

    Raises:
        InputError: If the shapes are not two equal vectors.
    """
    high, low = pair_vectors("pair_order_loss", high, low)
    if high.numel() == 0:
        return high.sum() + low.sum()
    return F.softplus(scale * (low - high)).mean()


def listnet_loss(similarities: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """List-wise ranking loss, the batch being the list (ListNet with top one, Cao et al., 2007).

    The divergence ``KL(softmax(scale · label) || softmax(scale · s))``: the cross-entropy of the
    paper less its lowest value, so that 0 is best. Any constant may be added to all similarities.
    At a scale of 5 a row with the label 4 weighs a quarter of one with a 5; at 20, a hundredth.

    Args:
        similarities: Predicted similarity of each row, ``(rows,)``.
        labels: Gold similarity of each row, ``(rows,)``.
        scale: Inverse temperature, above 0; the higher, the more the highest labels count.

    Returns:
        A scalar, at least 0 but for rounding; 0 for one row.

    Raises:
        InputError: If the shapes are not two equal, non-empty vectors.
    """
    similarities, labels = row_vectors("listnet_loss", similarities, labels)
    predicted = torch.log_softmax(scale * similarities, dim=0)
    gold = torch.log_softmax(scale * labels, dim=0)
    return F.kl_div(predicted, gold, reduction="sum", log_target=True)
