"""Loss functions: pure functions on tensors, the mathematics of the objectives.

Each computes in float32 whatever the dtype of its input and returns a float32 scalar, lower is
better. With nothing to compare the result is a constant that still has a graph. Vectors of
different lengths raise InputError.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.losses import CoSENTLoss as LibraryCoSENTLoss
from torch import Tensor, nn

from condsim.errors import InputError

# Gold similarity of the label 3.
MIDDLE_GOLD = 0.5

# A vector whose variance is not above this counts as constant.
MAX_CONSTANT_VARIANCE = 1e-12

# Labels that differ by this or less are not ranked against each other.
MIN_RANKED_GAP = 0.2


def mse_loss(similarities: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean squared error between similarity and label (C-STS §4.1).

    ``similarities`` are predicted, ``labels`` gold in [0, 1], and ``weights`` say how much each row
    counts, all alike if None; ``(rows,)`` each. Other losses on rows take the same.
    """
    similarities, labels = _vectors(similarities=similarities, labels=labels)
    return _weighted_mean((similarities - labels).square(), _row_shares(similarities, weights))


def classification_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the nearest of k evenly spaced labels (the released code of C-STS).

    The logits, ``(rows, k)``, go from the lowest label to the highest.
    """
    return F.cross_entropy(logits.float(), (labels * (logits.shape[1] - 1)).round().long())


def correlation_loss(similarities: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """One minus the Pearson correlation of similarities and labels over the batch, in [0, 2].

    A batch where either is constant (one row always is) has no correlation: the loss is 1 and its
    gradient 0.
    """
    similarities, labels = _vectors(similarities=similarities, labels=labels)
    shares = _row_shares(similarities, weights)
    x = _centered(similarities, shares)
    y = _centered(labels, shares)
    variance_x = _weighted_mean(x.square(), shares)
    variance_y = _weighted_mean(y.square(), shares)
    varies = (variance_x > MAX_CONSTANT_VARIANCE) & (variance_y > MAX_CONSTANT_VARIANCE)
    # The inner `where` keeps sqrt away from 0, whose infinite slope would turn the unused branch
    # of the outer one into NaN gradients.
    scale = torch.where(varies, variance_x * variance_y, torch.ones_like(variance_x)).sqrt()
    covariance = _weighted_mean(x * y, shares)
    return 1.0 - torch.where(varies, covariance / scale, torch.zeros_like(scale))


def tolerant_labels(labels: Tensor, similarities: Tensor, *, tolerance: float) -> Tensor:
    """Move labels of 3 toward the prediction, within bounds.

    Annotators who are unsure say 3, and annotating language models more so. Such a label is taken
    for all of ``[0.5 - tolerance, 0.5 + tolerance]``, and replaced by the value there that is
    nearest to the prediction. Under MSE that is the squared ε-insensitive loss of support vector
    regression (Vapnik, 1995) for these rows. Not for ranking: equal labels would get an order.
    No gradient goes through the result, ``(rows,)``. A ``tolerance`` of 0.25 reaches from 2 to 4.
    """
    nearest = similarities.detach().float().clamp(MIDDLE_GOLD - tolerance, MIDDLE_GOLD + tolerance)
    return torch.where(labels == MIDDLE_GOLD, nearest, labels.float())


def high_low_pairs(
    labels: Tensor, pair_ids: Tensor, *, ties: bool = False
) -> tuple[Tensor, Tensor]:
    """Find the rows of a batch that are one sentence pair under two conditions.

    Returns the row numbers ``(high, low)``, each ``(pairs,)``, of every two rows with the same id
    that is not negative: the higher label first, or with ``ties`` the first of two equal ones.
    """
    same = (pair_ids.unsqueeze(1) == pair_ids.unsqueeze(0)) & (pair_ids >= 0).unsqueeze(1)
    ordered = labels.unsqueeze(1) > labels.unsqueeze(0)  # (rows, rows)
    if ties:
        ordered |= (labels.unsqueeze(1) == labels.unsqueeze(0)).triu(1)
    high, low = torch.nonzero(same & ordered, as_tuple=True)  # (pairs,), (pairs,)
    return high, low


def quad_loss(high: Tensor, low: Tensor, *, margin: float = 1.0) -> Tensor:
    """Quadruplet margin loss, ``max(λ + cos(n1, n2) - cos(p1, p2), 0)`` (C-STS §4.1).

    The paper does not give λ; 1 is the value stated by CCL. ``high`` and ``low``
    are the similarities of each sentence pair under its higher- and lower-labeled condition,
    ``(pairs,)``. The result of this and other losses on pairs is their mean, 0 if there are none.
    """
    high, low = _vectors(high=high, low=low)
    return _mean_or_zero(torch.relu(margin + low - high))


def pair_order_loss(high: Tensor, low: Tensor, *, scale: float = 20.0) -> Tensor:
    """Logistic loss on the order of a sentence pair's two conditions.

    ``mean(log(1 + exp(scale · (s_low - s_high))))``: RankNet (Burges, 2005) on these two. Quad
    pushes with one force up to its margin; this pushes less and less the wider the gap.
    """
    high, low = _vectors(high=high, low=low)
    return _mean_or_zero(F.softplus(scale * (low - high)))


def fdl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Forward directional loss, ``max(gap + cos_neg - cos_pos, 0)`` (CCL Eq. 5).

    Quad with the labels' own gap for a margin: it stops pushing the two apart once they are as far
    from each other as the labels are. The gaps are ``l_pos - l_neg`` of each pair, in [0, 1].
    """
    return _mean_or_zero(torch.relu(_excess(high, low, gaps)))


def rdl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Reverse directional loss, ``max(cos_pos - cos_neg - gap, 0)`` (CCL Eq. 6).

    Pulls the two together where they are further apart than their labels.
    """
    return _mean_or_zero(torch.relu(-_excess(high, low, gaps)))


def acl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Adaptive contrastive loss, ``|gap + cos_neg - cos_pos|`` = FDL + RDL (CCL Eq. 8)."""
    return _mean_or_zero(_excess(high, low, gaps).abs())


def w_acl_loss(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """Weighted adaptive contrastive loss, ``gap · |gap + cos_neg - cos_pos|`` (CCL Eq. 9).

    The order of the two cosines is as in Eq. 8 and 9; the prose around them swaps it. The mean is
    over pairs, not over the sum of the weights.
    """
    return _mean_or_zero(gaps.float() * _excess(high, low, gaps).abs())


def cosent_loss(similarities: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """Ranking loss over all pairs of rows whose labels differ (CoSENT, Huang et al., 2024).

    ``log(1 + Σ exp(scale · (s_j - s_i)))`` over the rows i, j with label_i > label_j, computed by
    sentence-transformers' ``CoSENTLoss``; 0 when all labels are equal.
    """
    similarities, labels = _vectors(similarities=similarities, labels=labels)
    # Only the library's formula is needed: the similarities are computed already.
    library = LibraryCoSENTLoss(nn.Identity(), scale, similarity_fct=lambda column, _: column)  # type: ignore[arg-type]
    return library.compute_loss_from_embeddings([similarities, similarities], labels)


def ranknet_loss(similarities: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """Logistic ranking loss over all pairs of rows whose labels differ (RankNet, Burges, 2005).

    ``mean(log(1 + exp(scale · (s_j - s_i))))`` over the rows i, j with label_i > label_j. CoSENT
    takes the logarithm of their sum, so the worst pair rules it; here each counts by itself.
    """
    similarities, labels = _vectors(similarities=similarities, labels=labels)
    higher, lower = torch.nonzero(labels.unsqueeze(1) > labels.unsqueeze(0), as_tuple=True)
    return pair_order_loss(similarities[higher], similarities[lower], scale=scale)


def listnet_loss(similarities: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """List-wise ranking loss, the batch being the list (ListNet with top one, Cao et al., 2007).

    The divergence ``KL(softmax(scale · label) || softmax(scale · s))``: the cross-entropy of the
    paper less its lowest value, so that 0 is best. Any constant may be added to all similarities.
    At a scale of 5 a row with the label 4 weighs a quarter of one with a 5; at 20, a hundredth.
    """
    similarities, labels = _vectors(similarities=similarities, labels=labels)
    predicted = torch.log_softmax(scale * similarities, dim=0)
    gold = torch.log_softmax(scale * labels, dim=0)
    return F.kl_div(predicted, gold, reduction="sum", log_target=True)


def ranking_loss(
    similarities: Tensor,
    labels: Tensor,
    ids: Iterable[Tensor],
    weights: Tensor | None = None,
    *,
    scale: float = 10.0,
    ranking_margin: float = 0.1,
) -> Tensor:
    """Logistic loss on the order of rows that have something in common.

    ``softplus(-scale · (s_high - s_low - margin))`` over the rows of one id whose labels differ,
    each comparison weighted by the gap between the labels and the geometric mean of the rows'
    weights. RankNet (Burges, 2005) with a margin, on comparisons that are fair: the same texts
    under two conditions, two pairs of texts under the same condition. Each vector of ``ids``,
    ``(rows,)``, has an integer for each row; a negative one means none.
    """
    similarities, labels = _vectors(similarities=similarities, labels=labels)
    shares = _row_shares(similarities, weights)
    pairs = [high_low_pairs(labels, group_ids) for group_ids in ids]
    high = torch.cat([rows for rows, _ in pairs])  # (comparisons,)
    low = torch.cat([rows for _, rows in pairs])  # (comparisons,)
    gaps = labels[high] - labels[low]
    wide = gaps > MIN_RANKED_GAP
    if not bool(wide.any()):
        return 0.0 * similarities.sum()
    high, low, gaps = high[wide], low[wide], gaps[wide]
    if shares is not None:
        gaps = gaps * (shares[high] * shares[low]).sqrt()
    losses = F.softplus(-scale * (similarities[high] - similarities[low] - ranking_margin))
    return (gaps * losses).sum() / gaps.sum()


def negative_weights(labels: Tensor, *, sigma: float) -> Tensor:
    """Weights α of the negatives (CCL Eq. 11).

    α of sentence 1 of row i against sentence 2 of row j, ``(rows, rows)``, is off the diagonal 1;
    on it 0 where the label is at least σ (a false negative), else ``1 - label`` (a hard one).
    """
    labels = labels.float()
    weights = torch.ones(len(labels), len(labels), device=labels.device)  # (rows, rows)
    own = torch.where(labels >= sigma, torch.zeros_like(labels), 1.0 - labels)  # (rows,)
    return weights.diagonal_scatter(own)


def bcl_loss(
    positives: Tensor, negatives: Tensor, labels: Tensor, *, tau: float, sigma: float
) -> Tensor:
    """Balanced contrastive loss: InfoNCE with label-weighted negatives (CCL Eq. 10-12).

    ``mean over i of -log(e^(cos_ii/τ) / (e^(cos_ii/τ) + Σ_j α_ij e^(cos_ij/τ)))``. The mean of
    Eq. 12 is taken, since the log of Eq. 10 stands outside its sum.

    ``positives``, ``(rows,)``, are the cosines of sentence 1 of each row with itself under a second
    dropout, ``negatives``, ``(rows, rows)``, of sentence 1 of row i with sentence 2 of row j.
    The paper has a τ of 3 to 10; `negative_weights` takes σ.
    """
    positive_logits = positives.float() / tau  # (rows,)
    weights = negative_weights(labels, sigma=sigma)  # (rows, rows)
    # A negative of weight 0 gets the logit -inf.
    negative_logits = negatives.float() / tau + weights.log()  # (rows, rows)
    logits = torch.cat([positive_logits.unsqueeze(1), negative_logits], dim=1)  # (rows, 1 + rows)
    return (torch.logsumexp(logits, dim=1) - positive_logits).mean()


def vector_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """``mean(1 - cos(student, teacher))`` over the inputs of a batch, the objective ``vectors``.

    After Reimers and Gurevych, 2020, "Making Monolingual Sentence Embeddings Multilingual", where
    it is the squared distance. Both embeddings are ``(inputs, dim)``.
    """
    return 1.0 - F.cosine_similarity(student.float(), teacher.float(), dim=-1).mean()


def relation_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared difference of student and teacher cosines over every two inputs.

    Relational knowledge distillation (Park et al., 2019) with cosines: the two may have different
    dimensions, and no projection is needed. It is 0 for one input.
    """
    gaps = _cosine_matrix(student) - _cosine_matrix(teacher)  # (inputs, inputs), 0 on the diagonal
    pairs = len(student) * (len(student) - 1)
    return gaps.square().sum() / max(pairs, 1)


def _cosine_matrix(vectors: Tensor) -> Tensor:
    """Cosine of every two rows, the diagonal exactly 1, ``(inputs, inputs)`` float32."""
    unit = F.normalize(vectors.float(), dim=-1)
    return (unit @ unit.T).diagonal_scatter(torch.ones(len(unit), device=unit.device))


def _excess(high: Tensor, low: Tensor, gaps: Tensor) -> Tensor:
    """``gap + cos_neg - cos_pos`` of each pair in float32, ``(pairs,)``."""
    high, low, gaps = _vectors(high=high, low=low, gaps=gaps)
    return gaps + low - high


def _mean_or_zero(values: Tensor) -> Tensor:
    """The mean; 0 with a graph where there is nothing."""
    return values.mean() if values.numel() else values.sum()


def _centered(values: Tensor, shares: Tensor | None) -> Tensor:
    """Subtract the mean; the result is exactly zero for a constant vector, due to the shift."""
    shifted = values - values[0].detach()
    return shifted - _weighted_mean(shifted, shares)


def _weighted_mean(values: Tensor, shares: Tensor | None) -> Tensor:
    """The mean of rows that count by their shares, which sum to 1, or all alike."""
    return values.mean() if shares is None else (shares * values).sum()


def _row_shares(similarities: Tensor, weights: Tensor | None) -> Tensor | None:
    """Weights of rows, scaled to a sum of 1."""
    if weights is None:
        return None
    _, weights = _vectors(similarities=similarities, weights=weights)
    return weights / weights.sum()


def _vectors(**tensors: Tensor) -> list[Tensor]:
    """Check that tensors are vectors of one length and return them in float32."""
    shapes = [tuple(tensor.shape) for tensor in tensors.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise InputError(
            f"{' and '.join(tensors)} must be vectors of one length; got shapes "
            f"{', '.join(map(str, shapes))}."
        )
    return [tensor.float() for tensor in tensors.values()]
