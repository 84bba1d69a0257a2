"""How a tri-encoder makes one vector of a sentence's and a condition's."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.sentence_transformer.modules import (
    Pooling as TokenPooling,
    WeightedLayerPooling,
)
from torch import Tensor, nn

from condsim.encoders.backbone import activation_of
from condsim.errors import InputError, unknown_name

Pooling = Literal["cls", "mean", "mean_top2", "mean_first_last"]
"""``cls``: the first token. The others average over tokens: of the last layer, of the mean of the
last two layers, or of the mean of the first and the last transformer layer."""


def needs_hidden_states(pooling: str) -> bool:
    """Whether a pooling reads more layers than the last, so the backbone must return them all."""
    if pooling not in get_args(Pooling):
        raise unknown_name("pooling", pooling, get_args(Pooling))
    return pooling in ("mean_top2", "mean_first_last")


def pooling_modules(transformer: Transformer, pooling: Pooling) -> list[Module]:
    """Makes the modules that follow the transformer.

    The layer weights are fixed here; sentence-transformers does not store that, so a model that is
    loaded and trained further may move them.
    """
    dimension = transformer.get_embedding_dimension()
    if not needs_hidden_states(pooling):
        return [TokenPooling(dimension, pooling_mode="cls" if pooling == "cls" else "mean")]
    layers = int(transformer.config.num_hidden_layers)
    # Hidden states are numbered 0 (the embeddings) to `layers` (the last transformer layer).
    start = layers - 1 if pooling == "mean_top2" else 1
    weights = torch.zeros(layers + 1 - start)
    weights[0] = weights[-1] = 1.0
    layer_pooling = WeightedLayerPooling(
        dimension,
        num_hidden_layers=layers,
        layer_start=start,
        layer_weights=nn.Parameter(weights, requires_grad=False),
    )
    return [layer_pooling, TokenPooling(dimension, pooling_mode="mean")]


Fusion = Literal["hadamard", "concat", "low-rank"]
"""``hadamard``: the elementwise product; ``concat``: a linear layer (2d to d) and the backbone's
activation on [sentence; condition] (C-STS §4.1); ``low-rank``: a matrix (rank by d) that the
condition makes, times the sentence."""

RANK = 64
"""Rank of ``low-rank`` where none is given."""


class Hadamard(nn.Module):
    """The elementwise product, (n, d)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Multiplies (n, d) by (n, d) or (1, d)."""
        return sentences * conditions


class Concat(nn.Module):
    """A linear layer and an activation on [sentence; condition], (n, d)."""

    def __init__(self, dimension: int, activation: nn.Module) -> None:
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
    """Makes the module of a fusion; its weights are random."""
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
