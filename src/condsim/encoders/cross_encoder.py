"""The cross-encoder: both sentences and the condition in one sequence, scored together."""

from __future__ import annotations

from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense, Module
from sentence_transformers.sentence_transformer.modules import Dropout
from torch import nn
from transformers import PreTrainedTokenizerBase

from condsim.encoders.backbone import dropout_of, load_backbone
from condsim.encoders.bi_encoder import transform_modules
from condsim.encoders.pooling import Pooling, needs_hidden_states, pooling_modules
from condsim.errors import ModelError


def build_cross_encoder(
    backbone: str,
    *,
    pooling: Pooling = "cls",
    transform: bool = True,
    dropout: float | None = None,
    max_seq_length: int | None = None,
) -> CrossEncoder:
    """Builds ``f(s1, s2, c)`` (C-STS §4.1, cross-encoder).

    Backbone, pooling, the optional transform, dropout and a linear layer to one number, which is
    the similarity in [0, 1] with no activation. All modules are of sentence-transformers. Its input
    is a pair of texts, see ``conditioning.cross_encoder_pairs``.

    Args:
        backbone: A local folder or a Hub name, see ``backbone.load_backbone``.
        pooling: From token vectors to one vector.
        transform: Whether a dense layer (hidden to hidden, the backbone's activation, dropout)
            comes before the linear one: "[CLS] w/ MLP" of C-STS A.3, Table 7.
        dropout: Rate in [0, 1) for the backbone and the head; the backbone's own if None.
        max_seq_length: Longest input in tokens, all texts together; the backbone's own if None.

    Returns:
        A cross-encoder with one output.

    Raises:
        InputError: If an option is unknown or out of range.
        ModelError: If the backbone cannot be loaded.
    """
    transformer = load_backbone(
        backbone,
        dropout=dropout,
        max_seq_length=max_seq_length,
        hidden_states=needs_hidden_states(pooling),
    )
    modules: list[Module] = [transformer, *pooling_modules(transformer, pooling)]
    # The transform ends in dropout; without it, the linear layer needs one of its own.
    modules += (
        transform_modules(transformer) if transform else [Dropout(dropout_of(transformer.config))]
    )
    modules.append(
        Dense(
            transformer.get_embedding_dimension(),
            1,
            activation_function=nn.Identity(),
            module_output_name="scores",
        )
    )
    model: CrossEncoder = CrossEncoder(modules=list(modules), activation_fn=nn.Identity())
    return model


def pair_separator(tokenizer: PreTrainedTokenizerBase) -> str:
    """What a tokenizer itself puts between two texts, as text.

    Writing it between two sentences, with no space around it, gives the tokens that encoding them
    as a pair would give.

    Returns:
        ``[SEP]`` for BERT and its kin, ``</s></s>`` for RoBERTa and its kin.

    Raises:
        ModelError: If the tokenizer puts nothing between two texts.
    """
    encoding = tokenizer("a", "b")
    owners = encoding.sequence_ids()  # 0 or 1 per token, None for a special token
    between = encoding["input_ids"][owners.index(0) + 1 : owners.index(1)]
    between = [
        token
        for token in tokenizer.convert_ids_to_tokens(between)
        if token in tokenizer.all_special_tokens
    ]
    if not between:
        raise ModelError(
            f"The tokenizer {type(tokenizer).__name__} puts no separator between two texts, so it "
            "cannot join sentences for a cross-encoder. Choose another backbone."
        )
    return "".join(between)
