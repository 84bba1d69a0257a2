"""The objectives of conditional contrastive learning (CCL)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from condsim.errors import InputError
from condsim.training.losses.base import ConditionalLoss, EncodedBatch, LossOptions, Targets
from condsim.training.losses.functional import (
    acl_loss,
    bcl_loss,
    fdl_loss,
    mse_loss,
    rdl_loss,
    w_acl_loss,
)
from condsim.training.losses.similarity import PairedLoss


class ProjectionHead(nn.Module):
    """Linear → ReLU → Linear, of the encoder's own dimension (CCL §3.4).

    The paper does not describe g; this is the head of SimCLR (Chen et al., 2020). It belongs to
    the loss: the trainer trains it, checkpoints of a run keep it, a saved encoder has none of it.
    In a run of several processes its gradients are averaged over them, as the encoder's are.
    """

    def __init__(self, dimension: int) -> None:
        """Makes the head for embeddings of a dimension, which is also that of the projections."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dimension, dimension), nn.ReLU(), nn.Linear(dimension, dimension)
        )
        # In a tuple, or the wrapper would be a submodule and its parameters counted twice.
        self._parallel: tuple[DistributedDataParallel, ...] = ()

    def forward(self, embeddings: list[Tensor]) -> list[Tensor]:
        """Projects several batches, ``(rows, dim)`` each, in one pass; the result is float32."""
        layers: nn.Module = self.layers
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            if not self._parallel:
                self._parallel = (DistributedDataParallel(self.layers),)
            layers = self._parallel[0]
        # Under bfloat16 the cosines of near views would fall on a handful of values.
        with torch.autocast(embeddings[0].device.type, enabled=False):
            projected: Tensor = layers(torch.cat([batch.float() for batch in embeddings]))
        return list(torch.split(projected, [len(batch) for batch in embeddings]))


@dataclass(frozen=True)
class ProjectedBatch:
    """A batch in the projected space."""

    first: Tensor  # g(f(sentence 1, condition)), ``(rows, dim)``
    second: Tensor  # g(f(sentence 2, condition)), ``(rows, dim)``
    # g(f'(sentence 1, condition)), sentence 1 under a second dropout, ``(rows, dim)``; None where
    # no objective asks for it.
    view: Tensor | None
    targets: Targets


class ProjectedLoss(ConditionalLoss):
    """Base of the objectives over g(f(sentence, condition)); each has a projection head of its own.

    Raises:
        InputError: If the model does not know its dimension.
    """

    needs_view: ClassVar[bool] = False
    """Whether it needs sentence 1 under a second dropout, one more forward over that column."""

    def __init__(self, model: SentenceTransformer, options: LossOptions | None = None) -> None:
        super().__init__(model, options)
        self.head = new_head(model)

    @staticmethod
    @abstractmethod
    def compute(batch: ProjectedBatch, options: LossOptions) -> Tensor:
        """Computes the objective itself, a float32 scalar."""

    def of_batch(self, batch: EncodedBatch) -> Tensor:
        """Projects the batch and computes the objective."""
        projected = project_batch(self.model, self.head, batch, with_view=self.needs_view)
        return self.compute(projected, self.options)


def new_head(model: SentenceTransformer) -> ProjectionHead:
    """Makes a projection head that fits an encoder."""
    dimension = model.get_embedding_dimension()
    if dimension is None:
        raise InputError("BCL and C-MSE need an encoder that knows its embedding dimension.")
    return ProjectionHead(dimension)


def project_batch(
    model: nn.Module, head: ProjectionHead, batch: EncodedBatch, *, with_view: bool
) -> ProjectedBatch:
    """Projects a batch, all of it in one pass through the head."""
    embeddings = [batch.first, batch.second]
    if with_view:
        # Sentence 1 once more under fresh dropout (CCL §3.4). A forward of its own: in a merged
        # one the tri-encoder would take the two views for repeated texts and encode them once.
        embeddings.append(model(dict(batch.first_features))["sentence_embedding"])
    first, second, *view = head(embeddings)
    return ProjectedBatch(first, second, view[0] if view else None, batch.targets)


class FDLLoss(PairedLoss):
    """``mean(max(gap + cos_neg - cos_pos, 0))`` over the pairs of the batch (CCL Eq. 5).

    Forward directional loss: Quad whose margin is the gap between the two labels. Half of ACL.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See :func:`fdl_loss`."""
        return fdl_loss(high, low, gaps)


class RDLLoss(PairedLoss):
    """``mean(max(cos_pos - cos_neg - gap, 0))`` over the pairs of the batch (CCL Eq. 6).

    Reverse directional loss: the other half of ACL.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See :func:`rdl_loss`."""
        return rdl_loss(high, low, gaps)


class ACLLoss(PairedLoss):
    """``mean(|gap + cos_neg - cos_pos|)`` over the pairs of the batch (CCL Eq. 7 and 8).

    Adaptive contrastive loss: FDL + RDL, whichever direction a pair needs.
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See :func:`acl_loss`."""
        return acl_loss(high, low, gaps)


class WACLLoss(PairedLoss):
    """``mean(gap · |gap + cos_neg - cos_pos|)`` over the pairs of the batch (CCL Eq. 9).

    Weighted adaptive contrastive loss. All in the batch of one process: a pair whose rows are in
    different processes or accumulated batches is no pair (the sampler keeps pairs together).
    """

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See :func:`w_acl_loss`."""
        return w_acl_loss(high, low, gaps)


class BCLLoss(ProjectedLoss):
    """InfoNCE in the projected space with label-weighted negatives (CCL Eq. 10-12).

    The positive of a row is its own sentence 1 under the same condition and a second dropout, so
    the model needs dropout. Its negatives are the sentences 2 of *all* rows of the batch, both
    conditions of each pair: the other rows' with weight 1, its own with ``1 - label``, or 0 from
    label σ on. The batch is what one process holds in one step: gradient accumulation and more
    processes add batches, not negatives.
    """

    needs_view = True
    shown = ("tau", "sigma")

    def __init__(self, model: SentenceTransformer, *, tau: float = 5.0, sigma: float = 0.5) -> None:
        """Makes the loss.

        Args:
            tau: τ, above 0; divides the cosines.
            sigma: σ in [0, 1], the label from which a row's own sentence 2 is no negative.

        Raises:
            InputError: If τ or σ is out of its range.
        """
        super().__init__(model, LossOptions(tau=tau, sigma=sigma))

    @staticmethod
    def compute(batch: ProjectedBatch, options: LossOptions) -> Tensor:
        """See :func:`bcl_loss`.

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


class CMSELoss(ProjectedLoss):
    """``mean((cos(g(h1), g(h2)) - gold)²)`` (CCL Eq. 3, its fourth term).

    The paper names the term and does not write it out; this is what READING.md makes of it.
    """

    @staticmethod
    def compute(batch: ProjectedBatch, options: LossOptions) -> Tensor:
        """See :func:`mse_loss`."""
        similarities = F.cosine_similarity(batch.first, batch.second, dim=-1)  # (rows,)
        return mse_loss(similarities, batch.targets.gold)
