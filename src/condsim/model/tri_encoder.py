"""The tri-encoder: sentence and condition encoded apart by one backbone, then fused."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.model import BaseModel
from sentence_transformers.base.model_card import BaseModelCardData
from sentence_transformers.base.modules import InputModule, Transformer
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from condsim.errors import InputError, ModelError, check_at_least, check_name
from condsim.model.builders import (
    Pooling,
    activation_of,
    dropout_of,
    load_backbone,
    pooling_modules,
    transform_modules,
)
from condsim.model.inputs import Order, check_order, conditional_sentences

Fusion = Literal["hadamard", "concat", "low-rank"]
"""``hadamard``: the elementwise product; ``concat``: a linear layer (2d to d) and the backbone's
activation on [sentence; condition] (C-STS §4.1); ``low-rank``: a matrix (rank by d) that the
condition makes, times the sentence."""

RANK = 64
"""Default rank of ``low-rank``."""


class Hadamard(nn.Module):
    """The elementwise product, (n, d)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Multiply (n, d) by (n, d)."""
        return sentences * conditions


class Concat(nn.Module):
    """A linear layer and an activation on [sentence; condition], (n, d)."""

    def __init__(self, dimension: int, activation: nn.Module) -> None:
        super().__init__()
        self.dimension = dimension
        self.layer = nn.Sequential(nn.Linear(2 * dimension, dimension), activation)

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Join (n, d) and (n, d)."""
        both = torch.cat([sentences, conditions], dim=-1)  # (n, 2d)
        joined: Tensor = self.layer(both)
        return joined


class LowRank(nn.Module):
    """A hypernetwork: the condition makes a projection to few dimensions, (n, rank).

    The cosine then compares two sentences under a metric of that rank, which the condition chooses.
    In Hyper-CL (Yoo et al., 2024) they go back to d dimensions, which only adds weights where a
    cosine follows. Not in the papers of condsim.
    """

    def __init__(self, dimension: int, rank: int) -> None:
        """Make the layer, d to rank * d, at random."""
        super().__init__()
        self.dimension = rank
        self.projection = nn.Linear(dimension, rank * dimension)

    def forward(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Project sentences (n, d) by matrices made from conditions, (n, d)."""
        # Rows with equal conditions could share a matrix, but few rows of a batch do.
        matrices = self.projection(conditions).unflatten(-1, (self.dimension, -1))  # (n, rank, d)
        return torch.einsum("nrd,nd->nr", matrices, sentences)


def fusion_module(
    fusion: str, transformer: Transformer, *, rank: int = RANK
) -> Hadamard | Concat | LowRank:
    """Make the module of a fusion; its weights are random."""
    check_name("fusion", fusion, get_args(Fusion))
    check_at_least(1, rank=rank)
    dimension = int(transformer.get_embedding_dimension())
    if fusion == "hadamard":
        return Hadamard(dimension)
    if fusion == "concat":
        return Concat(dimension, activation_of(transformer.config))
    return LowRank(dimension, rank)


_WEIGHTS_FILE = "tri_encoder.safetensors"
_CONFIG_FILE = "tri_encoder_config.json"


class TriEncoder(InputModule):
    """First module of a ``SentenceTransformer``: ``h(c; s)`` of C-STS §4.1.

    Takes the same pairs of texts as a bi-encoder. The condition passes its own dropout and linear
    layer (d to d) after pooling; the fusion is a Hadamard product unless another is named. Each
    distinct sentence and each distinct condition of a batch runs through the backbone once,
    whatever the number of rows that share it (and then shares its dropout too).
    """

    config_file_name = _CONFIG_FILE
    config_keys = ["order", "pooling", "fusion", "transform", "rank"]  # noqa: RUF012 - as the base has it
    save_in_root = True

    def __init__(
        self,
        transformer: Transformer,
        *,
        order: Order = "condition-first",
        pooling: Pooling = "mean",
        fusion: Fusion = "hadamard",
        transform: bool = False,
        rank: int = RANK,
    ) -> None:
        """Make the module around a backbone; new layers are random.

        The backbone's config must ask for hidden states if the pooling needs them, as
        `build_tri_encoder` does, where the options are described.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        check_order(order)
        self.order, self.pooling, self.fusion, self.transform = order, pooling, fusion, transform
        self.rank = rank
        dimension = transformer.get_embedding_dimension()
        self.transformer = transformer
        self.pool = nn.Sequential(*pooling_modules(transformer, pooling))
        self.sentence_layer = nn.Sequential(*(transform_modules(transformer) if transform else ()))
        self.condition_layer = nn.Sequential(
            nn.Dropout(dropout_of(transformer.config)), nn.Linear(dimension, dimension)
        )
        self.fusion_layer = fusion_module(fusion, transformer, rank=rank)

    def preprocess(  # type: ignore[override]
        self,
        inputs: Sequence[Sequence[str]],
        prompt: str | None = None,
        *,
        max_length: int | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """Tokenize sentences and conditions of n pairs separately, (n, length) each.

        The condition's names do not end in ``input_ids``, by which the sentence-transformers
        trainer would take it for a column. ``task`` is ignored.
        """
        wrong = next((pair for pair in inputs if isinstance(pair, str) or len(pair) != 2), None)
        if prompt or wrong is not None:
            raise InputError(
                "A tri-encoder takes pairs of texts, condition and sentence "
                f"({self.order}), and no prompt; got {prompt or wrong!r}."
            )
        columns = [[pair[index] for pair in inputs] for index in (0, 1)]
        sentences, conditions = columns if self.order == "sentence-first" else columns[::-1]
        tokens, condition_tokens = (
            self.tokenizer(
                texts, padding=True, truncation=True, max_length=max_length, return_tensors="pt"
            )
            for texts in (sentences, conditions)
        )
        return {
            "input_ids": tokens["input_ids"],
            "attention_mask": tokens["attention_mask"],
            "condition_tokens": condition_tokens["input_ids"],
            "condition_mask": condition_tokens["attention_mask"],
        }

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Add ``sentence_embedding``, (n, d), to the result of ``preprocess``."""
        sentences = self.sentence_vectors(features["input_ids"], features["attention_mask"])
        conditions = self.condition_vectors(
            features["condition_tokens"], features["condition_mask"]
        )
        features["sentence_embedding"] = self.fusion_layer(sentences, conditions)
        return features

    def sentence_vectors(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Encode sentences alone, (n, d), from token ids and their mask, (n, length)."""
        pooled, row_of = self._encode_distinct(tokens, mask)  # (distinct, d), (n,)
        features: dict[str, Tensor] = self.sentence_layer({"sentence_embedding": pooled})
        return features["sentence_embedding"].index_select(0, row_of)

    def condition_vectors(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Encode conditions alone, (n, d), from token ids and their mask, (n, length)."""
        pooled, row_of = self._encode_distinct(tokens, mask)  # (distinct, d), (n,)
        vectors: Tensor = self.condition_layer(pooled)
        return vectors.index_select(0, row_of)

    def save(
        self, output_path: str, *args: object, safe_serialization: bool = True, **_: object
    ) -> None:
        """Write the backbone as a transformers checkpoint, and the other weights next to it."""
        self.transformer.save(output_path, safe_serialization=safe_serialization)
        self.save_config(output_path)
        save_file(self._own_weights(), Path(output_path, _WEIGHTS_FILE))

    @classmethod
    def load(  # type: ignore[override]
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        trust_remote_code: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        **_: object,
    ) -> TriEncoder:
        """Read the result of ``save``; every module of the library has these arguments."""
        hub: dict[str, Any] = dict(
            subfolder=subfolder,
            token=token,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
        )
        config = cls.load_config(model_name_or_path, **hub)
        weights = cls.load_file_path(model_name_or_path, _WEIGHTS_FILE, **hub)
        if not config or weights is None:
            raise ModelError(
                f"{model_name_or_path} is not a tri-encoder: it must contain {_CONFIG_FILE} and "
                f"{_WEIGHTS_FILE}."
            )
        transformer = Transformer.load(
            model_name_or_path,
            trust_remote_code=trust_remote_code,
            model_kwargs=model_kwargs,
            processor_kwargs=processor_kwargs,
            config_kwargs=config_kwargs,
            **hub,
        )
        module = cls(transformer, **config)
        stored = load_file(weights)
        own = module._own_weights()
        shapes = [{name: value.shape for name, value in part.items()} for part in (stored, own)]
        if shapes[0] != shapes[1]:
            raise ModelError(
                f"The layers in {weights} do not fit the options in {_CONFIG_FILE}; save the "
                "model again."
            )
        module.load_state_dict(stored, strict=False)
        return module

    def on_model_ready(self, model: BaseModel) -> None:
        """Replace the sentences in the model card's example by pairs."""
        if isinstance(model.model_card_data, BaseModelCardData):
            model.model_card_data.usage_examples = conditional_sentences(
                ["A man throws a ball.", "A girl kicks a ball.", "Two dogs run in a park."],
                ["the sport"] * 3,
                order=self.order,
            )

    def get_embedding_dimension(self) -> int:
        """Dimension of the embeddings: d, or the rank of ``low-rank``."""
        return int(self.fusion_layer.dimension)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:  # type: ignore[override]
        """The backbone's tokenizer."""
        tokenizer: PreTrainedTokenizerBase = self.transformer.processor
        return tokenizer

    @property
    def max_seq_length(self) -> int | None:
        """Longest text in tokens, for sentence and condition each."""
        return self.transformer.max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.transformer.max_seq_length = value

    def _encode_distinct(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pool each distinct text once; returns vectors (distinct, d) and their rows, (n,)."""
        # Merging two columns pads with 0, which need not be the padding token.
        tokens = torch.where(mask.bool(), tokens, self.tokenizer.pad_token_id or 0)  # (n, length)
        _, row_of = torch.unique(tokens, dim=0, return_inverse=True)  # (n,)
        rows = torch.arange(len(tokens), device=tokens.device)
        last = rows.new_full((int(row_of.max()) + 1,), len(tokens))
        # The first of each set of equal rows.
        first = last.scatter_reduce(0, row_of, rows, "amin")  # (distinct,)
        features = self.transformer({"input_ids": tokens[first], "attention_mask": mask[first]})
        pooled: Tensor = self.pool(features)["sentence_embedding"]  # (distinct, d)
        return pooled, row_of

    def _own_weights(self) -> dict[str, Tensor]:
        """Weights of everything but the backbone, which saves itself."""
        return {
            name: value.contiguous()
            for name, value in self.state_dict().items()
            if not name.startswith("transformer.")
        }


def build_tri_encoder(
    backbone: str,
    *,
    order: Order = "condition-first",
    pooling: Pooling = "mean",
    fusion: Fusion = "hadamard",
    transform: bool = False,
    rank: int = RANK,
    dropout: float | None = None,
    max_seq_length: int | None = None,
) -> SentenceTransformer:
    """Build ``h(c; s)``, to be compared by cosine (C-STS §4.1, tri-encoder).

    Other arguments and errors are as in `build_bi_encoder`; ``transform`` follows the pooling of
    the sentence alone, and ``max_seq_length`` applies to each text. Embeddings have the dimension
    of the backbone, or ``rank`` with the fusion ``low-rank``.
    """
    transformer = load_backbone(
        backbone, dropout=dropout, max_seq_length=max_seq_length, pooling=pooling
    )
    module = TriEncoder(
        transformer, order=order, pooling=pooling, fusion=fusion, transform=transform, rank=rank
    )
    return SentenceTransformer(modules=[module], similarity_fn_name="cosine")


def load_tri_encoder(path: str) -> SentenceTransformer:
    """Load a saved tri-encoder; ModelError if the folder is another model.

    ``SentenceTransformer(path)`` refuses any module outside its library unless it may run remote
    code; this needs no such permission, since the class is here.
    """
    listing = Path(path, "modules.json")
    modules = json.loads(listing.read_text("utf-8")) if listing.is_file() else []
    types = [str(module["type"]) for module in modules]
    # Folders name the class by the module that defined it when they were saved.
    if len(types) != 1 or not re.fullmatch(r"condsim\.[\w.]*\bTriEncoder", types[0]):
        raise ModelError(
            f"{path} is not a tri-encoder: its modules.json must list only condsim's TriEncoder; "
            f"got {types or 'no such file'}."
        )
    return SentenceTransformer(modules=[TriEncoder.load(path)], similarity_fn_name="cosine")
