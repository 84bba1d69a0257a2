"""Builders of the bi-encoder (sentence and condition) and the cross-encoder (all texts)."""

from __future__ import annotations

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Module, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout
from torch import nn
from transformers import PreTrainedTokenizerBase

from condsim.errors import ModelError
from condsim.model.backbone import (
    Pooling,
    activation_of,
    dropout_of,
    load_backbone,
    pooling_modules,
)
from condsim.model.conditions import Layout


def build_bi_encoder(
    backbone: str,
    *,
    pooling: Pooling = "mean",
    transform: bool = False,
    dropout: float | None = None,
    max_seq_length: int | None = None,
) -> SentenceTransformer:
    """Build ``f(s, c)``, to be compared by cosine (C-STS §4.1, bi-encoder).

    Every module belongs to sentence-transformers, so a saved model needs no condsim to load. Its
    input is a pair of texts, see ``condsim.model.conditions.conditional_sentences``.

    Args:
        backbone: A local folder or a Hub name, see ``condsim.model.backbone.load_backbone``.
        pooling: From token vectors to one vector.
        transform: Whether a dense layer (hidden to hidden, the backbone's activation, dropout)
            follows the pooling: "[CLS] w/ MLP" of C-STS A.3, Table 7.
        dropout: Rate in [0, 1) for the backbone and the transform; the backbone's own if None.
        max_seq_length: Longest input in tokens, both texts together; the backbone's own if None.

    Returns:
        An encoder of dimension d, that of the backbone.

    Raises:
        InputError: If an option is unknown or out of range.
        ModelError: If the backbone cannot be loaded.
    """
    transformer = load_backbone(
        backbone, dropout=dropout, max_seq_length=max_seq_length, pooling=pooling
    )
    modules: list[Module] = [transformer, *pooling_modules(transformer, pooling)]
    if transform:
        modules += transform_modules(transformer)
    return SentenceTransformer(modules=list(modules), similarity_fn_name="cosine")


def transform_modules(transformer: Transformer) -> list[Module]:
    """Make the transform of a pooled vector: dense, activation, dropout (C-STS A.3)."""
    dimension = transformer.get_embedding_dimension()
    dense = Dense(dimension, dimension, activation_function=activation_of(transformer.config))
    return [dense, Dropout(dropout_of(transformer.config))]


def build_cross_encoder(
    backbone: str,
    *,
    pooling: Pooling = "cls",
    transform: bool = True,
    dropout: float | None = None,
    max_seq_length: int | None = None,
    outputs: int = 1,
) -> CrossEncoder:
    """Build ``f(s1, s2, c)`` (C-STS §4.1, cross-encoder).

    Backbone, pooling, the optional transform, dropout and a linear layer to one number, which is
    the similarity in [0, 1] with no activation. Every module belongs to sentence-transformers. Its
    input is a text, see ``condsim.model.conditions.cross_encoder_inputs``.

    Other arguments and errors are those of `build_bi_encoder`; ``dropout`` is also the rate of the
    head, and ``max_seq_length`` the limit of all texts together.

    Args:
        outputs: 1, the similarity; for the objective ``classification`` one logit for each label.
    """
    transformer = load_backbone(
        backbone, dropout=dropout, max_seq_length=max_seq_length, pooling=pooling
    )
    modules: list[Module] = [transformer, *pooling_modules(transformer, pooling)]
    # The transform ends in dropout; without it, the linear layer needs its own.
    modules += (
        transform_modules(transformer) if transform else [Dropout(dropout_of(transformer.config))]
    )
    modules.append(
        Dense(
            transformer.get_embedding_dimension(),
            outputs,
            activation_function=nn.Identity(),
            module_output_name="scores",
        )
    )
    model: CrossEncoder = CrossEncoder(modules=list(modules), activation_fn=nn.Identity())
    return model


def separator_of(tokenizer: PreTrainedTokenizerBase, layout: Layout) -> str:
    """Find the text that separates the sentences in a cross-encoder's input.

    Returns:
        For ``released`` the separator between spaces, as the code of C-STS writes it: `` [SEP] ``
        or `` </s> ``; a byte-level tokenizer makes a token of the first space. For ``pair`` the
        tokens that the tokenizer itself puts between two texts: ``[SEP]`` or ``</s></s>``.

    Raises:
        ModelError: If the tokenizer has no separator.
    """
    tokens = [tokenizer.sep_token] if tokenizer.sep_token else []
    if layout == "pair":
        encoding = tokenizer("a", "b")
        # The owner of a token is text 0 or 1, or None for a special token.
        owners = encoding.sequence_ids()
        ids = encoding["input_ids"][owners.index(0) + 1 : owners.index(1)]
        special = tokenizer.all_special_tokens
        tokens = [token for token in tokenizer.convert_ids_to_tokens(ids) if token in special]
    if not tokens:
        raise ModelError(
            f"The tokenizer {type(tokenizer).__name__} has no separator to join sentences with; "
            "choose another backbone."
        )
    return f" {tokens[0]} " if layout == "released" else "".join(tokens)
