"""Pooling: from token vectors to one vector per text, with plain sentence-transformers modules."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling as TokenPooling
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import nn

from condsim.errors import unknown_name

__all__ = ["Pooling", "needs_hidden_states", "pooling_modules"]

Pooling = Literal["cls", "mean", "mean_top2", "mean_first_last"]
"""``cls``: the first token. The others average over tokens: of the last layer, of the mean of the
last two layers, or of the mean of the first and the last transformer layer."""


def needs_hidden_states(pooling: str) -> bool:
    """Whether a pooling reads more layers than the last, so the backbone must return them all.

    Args:
        pooling: Name of the pooling.

    Returns:
        True for ``mean_top2`` and ``mean_first_last``.

    Raises:
        InputError: If the name is unknown.
    """
    if pooling not in get_args(Pooling):
        raise unknown_name("pooling", pooling, get_args(Pooling))
    return pooling in ("mean_top2", "mean_first_last")


def pooling_modules(transformer: Transformer, pooling: Pooling) -> list[Module]:
    """Makes the modules that follow the transformer.

    The layer weights are fixed here; sentence-transformers does not store that, so a model that is
    loaded and trained further may move them.

    Args:
        transformer: The backbone; its config must ask for hidden states if the pooling needs them.
        pooling: Name of the pooling.

    Returns:
        Modules that turn ``token_embeddings`` into ``sentence_embedding``.

    Raises:
        InputError: If the name is unknown.
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
