"""The projection head g of CCL: trained beside the encoder, never saved with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

__all__ = ["ProjectionHead"]


class ProjectionHead(nn.Module):
    """Linear → ReLU → Linear, of the encoder's own dimension (CCL §3.4).

    The paper does not describe g; this is the head of SimCLR (Chen et al., 2020). It belongs to
    the loss: the trainer trains it, checkpoints of a run keep it, a saved encoder has none of it.
    In a run of several processes its gradients are averaged over them, as the encoder's are.
    """

    def __init__(self, dimension: int) -> None:
        """Makes the head.

        Args:
            dimension: Dimension of the embeddings, in and out.
        """
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dimension, dimension), nn.ReLU(), nn.Linear(dimension, dimension)
        )
        # In a tuple, or the wrapper would be a submodule and its parameters counted twice.
        self._parallel: tuple[DistributedDataParallel, ...] = ()

    def forward(self, embeddings: list[Tensor]) -> list[Tensor]:
        """Projects several batches in one pass.

        Args:
            embeddings: Embeddings, ``(rows, dim)`` each.

        Returns:
            Their projections in float32, ``(rows, dim)`` each.
        """
        layers: nn.Module = self.layers
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            if not self._parallel:
                self._parallel = (DistributedDataParallel(self.layers),)
            layers = self._parallel[0]
        # Under bfloat16 the cosines of near views would fall on a handful of values.
        with torch.autocast(embeddings[0].device.type, enabled=False):
            projected: Tensor = layers(torch.cat([batch.float() for batch in embeddings]))
        return list(torch.split(projected, [len(batch) for batch in embeddings]))
