"""BERT and MPNet encoders in plain PyTorch: mean pooling over the tokens, no transformers.

The training script runs on a machine that may have torch and nothing else, reads token ids, and
must know which layers are frozen. State dicts have the names of transformers, without a prefix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of an encoder.

    Attributes:
        kind: ``bert`` or ``mpnet``.
        vocabulary: Entries of the word embeddings.
        hidden: Dimension of a token, and of the vector of a text.
        inner: Dimension between the two layers of a feed-forward block.
        layers: Number of layers.
        heads: Attention heads of a layer.
        positions: Entries of the position embeddings.
        epsilon: The epsilon of the layer norms.
    """

    kind: str
    vocabulary: int
    hidden: int
    inner: int
    layers: int
    heads: int
    positions: int
    epsilon: float

    @classmethod
    def from_transformers(cls, config: Mapping[str, object]) -> EncoderConfig:
        """Read the ``config.json`` of a checkpoint."""

        def number(key: str) -> int:
            return int(str(config[key]))

        return cls(
            kind=str(config["model_type"]),
            vocabulary=number("vocab_size"),
            hidden=number("hidden_size"),
            inner=number("intermediate_size"),
            layers=number("num_hidden_layers"),
            heads=number("num_attention_heads"),
            positions=number("max_position_embeddings"),
            epsilon=float(str(config["layer_norm_eps"])),
        )

    @property
    def ids(self) -> tuple[int, int, int]:
        """Ids of the first token, the separator and padding."""
        return (0, 2, 1) if self.kind == "mpnet" else (101, 102, 0)


class Layer(nn.Module):
    """One layer: attention and feed-forward block, each followed by a norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.hidden, config.hidden)
        self.key = nn.Linear(config.hidden, config.hidden)
        self.value = nn.Linear(config.hidden, config.hidden)
        self.output = nn.Linear(config.hidden, config.hidden)
        self.attention_norm = nn.LayerNorm(config.hidden, config.epsilon)
        self.inner = nn.Linear(config.hidden, config.inner)
        self.outer = nn.Linear(config.inner, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, config.epsilon)

    def forward(self, states: Tensor, bias: Tensor | None) -> Tensor:
        """Map (batch, tokens, hidden) to the same; ``bias`` is added to attention scores."""
        batch, tokens, hidden = states.shape
        query, key, value = (
            layer(states).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )  # (batch, heads, tokens, hidden / heads)
        if bias is not None:
            bias = bias.to(query.dtype)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        mixed = self.output(mixed.transpose(1, 2).reshape(batch, tokens, hidden))
        states = self.attention_norm(states + mixed)
        result: Tensor = self.norm(states + self.outer(F.gelu(self.inner(states))))
        return result


class Encoder(nn.Module):
    """Embeds token ids; lower layers may be frozen."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.hidden)
        self.positions = nn.Embedding(config.positions, config.hidden)
        self.types = nn.Embedding(2, config.hidden) if config.kind == "bert" else None
        self.embedding_norm = nn.LayerNorm(config.hidden, config.epsilon)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.relative = nn.Embedding(32, config.heads) if config.kind == "mpnet" else None
        self.frozen_layers = 0

    def freeze(self, layers: int) -> None:
        """Freeze the embeddings and so many of the lower layers."""
        self.frozen_layers = layers
        below = [self.words, self.positions, self.types, self.embedding_norm, self.relative]
        for module in (*below, *self.layers[:layers]):
            if module is not None:
                module.requires_grad_(False)

    def forward(self, ids: Tensor, mask: Tensor, second: Tensor) -> Tensor:
        """Embed a batch; return unit vectors."""
        with torch.no_grad():
            states = self._embedded(ids, second)
            bias = self._bias(mask)
            for layer in self.layers[: self.frozen_layers]:
                states = layer(states, bias)
        for layer in self.layers[self.frozen_layers :]:
            states = layer(states, bias)
        weights = mask.unsqueeze(-1).float()  # (batch, tokens, 1)
        total = (states.float() * weights).sum(1)
        return F.normalize(total / weights.sum(1), dim=-1)

    def _embedded(self, ids: Tensor, second: Tensor) -> Tensor:
        tokens = ids.shape[1]
        # MPNet numbers positions from 2, after its padding id.
        offset = 2 if self.config.kind == "mpnet" else 0
        places = torch.arange(offset, offset + tokens, device=ids.device)
        states = self.words(ids) + self.positions(places)
        if self.types is not None:
            states = states + self.types(second)
        embedded: Tensor = self.embedding_norm(states)
        return embedded

    def _bias(self, mask: Tensor) -> Tensor | None:
        bias = None
        if self.relative is not None:
            places = torch.arange(mask.shape[1], device=mask.device)
            buckets = _relative_buckets(places[None, :] - places[:, None])
            bias = self.relative(buckets).permute(2, 0, 1).unsqueeze(0)  # (1, heads, t, t)
        if bool(mask.all()):
            return bias
        absent = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -1e9)
        absent = absent[:, None, None, :]  # (batch, 1, 1, tokens)
        return absent if bias is None else bias + absent


def _relative_buckets(distances: Tensor, *, buckets: int = 32, farthest: int = 128) -> Tensor:
    """Buckets of MPNet's relative attention bias, as in transformers."""
    half = buckets // 2
    # The token attended to comes first.
    behind = (distances < 0).long()
    distance = distances.abs()
    exact = half // 2
    ratio = (distance.float().clamp(min=1) / exact).log() / math.log(farthest / exact)
    far = (exact + (ratio * (half - exact)).long()).clamp(max=half - 1)
    # transformers counts from query to key with the sign turned: keys behind come first.
    return (1 - behind) * (distance > 0).long() * half + torch.where(
        distance < exact, distance, far
    )


_LAYER_NAMES = {
    "bert": {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "norm": "output.LayerNorm",
    },
    "mpnet": {
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "output": "attention.attn.o",
        "attention_norm": "attention.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "norm": "output.LayerNorm",
    },
}


def transformers_names(config: EncoderConfig) -> dict[str, str]:
    """Name of the weights here, each with its name in transformers."""
    names = {
        "words.weight": "embeddings.word_embeddings.weight",
        "positions.weight": "embeddings.position_embeddings.weight",
        "embedding_norm.weight": "embeddings.LayerNorm.weight",
        "embedding_norm.bias": "embeddings.LayerNorm.bias",
    }
    if config.kind == "bert":
        names["types.weight"] = "embeddings.token_type_embeddings.weight"
    else:
        names["relative.weight"] = "encoder.relative_attention_bias.weight"
    for number in range(config.layers):
        for own, other in _LAYER_NAMES[config.kind].items():
            for part in ("weight", "bias"):
                names[f"layers.{number}.{own}.{part}"] = f"encoder.layer.{number}.{other}.{part}"
    return names


def load_weights(encoder: Encoder, state: Mapping[str, Tensor]) -> None:
    """Load a state dict with the names of transformers."""
    names = transformers_names(encoder.config)
    encoder.load_state_dict({own: state[other].float() for own, other in names.items()})


def weights_of(encoder: Encoder) -> dict[str, Tensor]:
    """State dict with the names of transformers."""
    state = encoder.state_dict()
    return {other: state[own] for own, other in transformers_names(encoder.config).items()}
