"""How a tri-encoder makes one vector of a sentence's and a condition's."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn

from condsim.encoders.backbone import activation_of
from condsim.errors import InputError, unknown_name

__all__ = ["RANK", "Concat", "Fusion", "Hadamard", "LowRank", "fusion_module"]

Fusion = Literal["hadamard", "concat", "low-rank"]
"""``hadamard``: the elementwise product; ``concat``: a linear layer (2d to d) and the backbone's
activation on [sentence; condition] (C-STS §4.1); ``low-rank``: a matrix (rank by d) that the
condition makes, times the sentence."""

RANK = 64
"""Rank of ``low-rank`` where none is given."""


class Hadamard(nn.Module):
    """The elementwise product, (n, d)."""

    def __init__(self, dimension: int) -> None:
        """Keeps the dimension d."""
        super().__init__()
        self.dimension = dimension

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Multiplies (n, d) by (n, d) or (1, d)."""
        return sentences * conditions


class Concat(nn.Module):
    """A linear layer and an activation on [sentence; condition], (n, d)."""

    def __init__(self, dimension: int, activation: nn.Module) -> None:
        """Makes the layer, 2d to d."""
        super().__init__()
        self.dimension = dimension
        self.layer = nn.Sequential(nn.Linear(2 * dimension, dimension), activation)

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Joins (n, d) and (n, d) or (1, d)."""
        both = torch.cat([sentences, conditions.expand_as(sentences)], dim=-1)  # (n, 2d)
        joined: Tensor = self.layer(both)
        return joined


class LowRank(nn.Module):
    """A hypernetwork: the condition makes a projection to few dimensions, (n, rank).

    The cosine then compares two sentences under a metric of that rank, which the condition chooses.
    Hypernetworks for conditional embeddings are those of Hyper-CL (Yoo et al., 2024), which go back
    to d dimensions; that only adds weights where a cosine follows. Not in the papers of condsim.
    """

    def __init__(self, dimension: int, rank: int) -> None:
        """Makes the layer, d to rank * d, at random."""
        super().__init__()
        self.dimension = rank
        self.projection = nn.Linear(dimension, rank * dimension)

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Projects sentences (n, d) by matrices made from conditions, (n, d) or (1, d)."""
        # As many matrices as distinct conditions would do; a batch has few rows that share one.
        matrices = self.projection(conditions).unflatten(-1, (self.dimension, -1))  # (n, rank, d)
        projected: Tensor = (
            sentences @ matrices[0].T
            if len(conditions) == 1
            else torch.einsum("nrd,nd->nr", matrices, sentences)
        )
        return projected


def fusion_module(
    fusion: str, transformer: Transformer, *, rank: int = RANK
) -> Hadamard | Concat | LowRank:
    """Makes the module of a fusion; its weights are random.

    Args:
        fusion: Name of a `Fusion`.
        transformer: The backbone, whose dimension d and activation are taken.
        rank: Dimension of ``low-rank``, at least 1; the others ignore it.

    Returns:
        A module of sentences (n, d) and conditions, (n, d) or one for all, (1, d), with the
        ``dimension`` of its result.

    Raises:
        InputError: If the fusion is unknown or the rank out of range.
        ModelError: If the backbone's activation is unknown and needed.
    """
    dimension = int(transformer.get_embedding_dimension())
    if fusion == "hadamard":
        return Hadamard(dimension)
    if fusion == "concat":
        return Concat(dimension, activation_of(transformer.config))
    if fusion != "low-rank":
        raise unknown_name("fusion", fusion, get_args(Fusion))
    if rank < 1:
        raise InputError(f"rank must be at least 1. Got {rank} instead.")
    return LowRank(dimension, rank)
