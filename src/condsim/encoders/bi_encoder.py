"""The bi-encoder: one backbone over sentence and condition, a plain SentenceTransformer."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Module, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, Normalize

from condsim.encoders.backbone import activation_of, dropout_of, load_backbone
from condsim.encoders.pooling import Pooling, needs_hidden_states, pooling_modules


def build_bi_encoder(
    backbone: str,
    *,
    pooling: Pooling = "mean",
    transform: bool = False,
    dropout: float | None = None,
    max_seq_length: int | None = None,
    normalize: bool = False,
) -> SentenceTransformer:
    """Builds ``f(s, c)``, to be compared by cosine (C-STS §4.1, bi-encoder).

    Every module is one of sentence-transformers, so a saved model needs no condsim to load. Its
    input is a pair of texts, see ``conditioning.conditional_sentences``.

    Args:
        backbone: A local folder or a Hub name, see ``backbone.load_backbone``.
        pooling: From token vectors to one vector.
        transform: Whether a dense layer (hidden to hidden, the backbone's activation, dropout)
            follows the pooling: "[CLS] w/ MLP" of C-STS A.3, Table 7.
        dropout: Rate in [0, 1) for the backbone and the transform; the backbone's own if None.
        max_seq_length: Longest input in tokens, both texts together; the backbone's own if None.
        normalize: Whether embeddings are scaled to length 1, which changes no cosine.

    Returns:
        An encoder of dimension d, that of the backbone.

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
    if transform:
        modules += transform_modules(transformer)
    if normalize:
        modules.append(Normalize())
    return SentenceTransformer(modules=list(modules), similarity_fn_name="cosine")


def transform_modules(transformer: Transformer) -> list[Module]:
    """The transform on a pooled vector: dense, activation, dropout (C-STS A.3; READING.md)."""
    dimension = transformer.get_embedding_dimension()
    dense = Dense(dimension, dimension, activation_function=activation_of(transformer.config))
    return [dense, Dropout(dropout_of(transformer.config))]
