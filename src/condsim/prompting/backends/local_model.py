"""Finding and loading a generating model: config and tokenizer first, the weights when needed."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)
from transformers.utils import logging

from condsim.encoders import without_progress_bars
from condsim.errors import InputError, ModelError
from condsim.files import sha256_of
from condsim.prompting.backends.local_tokens import first_line

# What decides an answer, beside the code: weights, config, end tokens, tokenizer, chat template.
_REVISION_FILES = (
    *("config.json", "generation_config.json", "*.safetensors", "tokenizer*", "*.jinja"),
    *("added_tokens.json", "special_tokens_map.json", "vocab*", "merges.txt", "*.model"),
)

_FEWEST_TOKENS = 10  # without its files, transformers makes a tokenizer of a few special tokens


@dataclass(frozen=True)
class Checkpoint:
    """A model whose weights are not loaded yet."""

    source: str  # folder or Hub name to load from
    name: str  # name of the folder, or the Hub name
    commit: str | None  # on the Hub; None for a folder
    config: PretrainedConfig
    tokenizer: PreTrainedTokenizerBase  # with a padding token

    @property
    def seq2seq(self) -> bool:
        """Whether an encoder reads the prompt; else the model goes on writing it."""
        return bool(self.config.is_encoder_decoder)

    def revision(self) -> str:
        """Version of the model; reads the weights of a folder once through."""
        if self.commit is not None:
            return self.commit
        digest = hashlib.sha256()
        for path in _files(Path(self.source), *_REVISION_FILES):
            digest.update(f"{path.name} {path.stat().st_size} {sha256_of(path)}\n".encode())
        return digest.hexdigest()[:12]

    def dtype_on(self, device: torch.device) -> torch.dtype:
        """Number format to compute in."""
        stored = self.config.dtype or self.config.get_text_config(decoder=True).dtype
        dtype = stored if isinstance(stored, torch.dtype) else torch.float32
        if device.type != "cpu":
            return dtype
        native = bool(torch.cpu.get_capabilities().get("avx512_bf16", False))
        return dtype if dtype == torch.bfloat16 and native else torch.float32


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps bars, log lines and Python warnings of transformers from the screen."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        with without_progress_bars(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)


def device_for(name: str | None) -> torch.device:
    """Finds where to run."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"device must be one that torch can use here, such as 'cpu' or 'cuda'. "
            f"Got {name!r} instead: {first_line(error)}"
        ) from error
    return device


def open_checkpoint(model: str | Path) -> Checkpoint:
    """Reads config and tokenizer, and makes sure that the model generates text."""
    if not str(model).strip():
        raise ModelError("The model must have a name: a folder, or a name on the Hub (owner/name).")
    folder = Path(model).expanduser()
    is_folder = folder.is_dir()
    looks_local = isinstance(model, Path) or model.startswith((".", "/", "~"))
    if not is_folder and (looks_local or str(model).count("/") > 1):
        raise ModelError(
            f"There is no model folder {str(model)!r}. Give a folder that holds a transformers "
            "model, or a name on the Hub (owner/name)."
        )
    source = str(folder) if is_folder else str(model)
    name = folder.resolve().name if is_folder else str(model)
    with quiet():
        config = _config(source, name, is_folder=is_folder)
        commit = None if is_folder else getattr(config, "_commit_hash", None) or "main"
        _check_generates(config, name)
        if is_folder:
            _check_weights(folder, name)
        tokenizer = _tokenizer(source, name, commit)
    return Checkpoint(source, name, commit, config, tokenizer)


def load_weights(
    checkpoint: Checkpoint, *, device: torch.device, max_new_tokens: int
) -> PreTrainedModel:
    """Loads a model for greedy generation, whatever its generation_config.json says."""
    loader: Any = AutoModelForSeq2SeqLM if checkpoint.seq2seq else AutoModelForCausalLM
    with quiet():
        try:
            model, found = loader.from_pretrained(
                checkpoint.source,
                revision=checkpoint.commit or "main",
                dtype=checkpoint.dtype_on(device),
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except Exception as error:  # Hub, network and file errors share no base class.
            raise ModelError(
                f"Could not load the weights of {checkpoint.name!r}, which must be in the "
                f"safetensors format: {first_line(error)}"
            ) from error
        if missing := sorted(found["missing_keys"]):
            raise ModelError(
                f"{checkpoint.name!r} must hold all weights of a generating model. {len(missing)} "
                f"are missing, such as {missing[0]}; get the model anew."
            )
        model.generation_config = _greedy(model, checkpoint.tokenizer, max_new_tokens)
        try:
            loaded: PreTrainedModel = model.eval().to(device)
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"{checkpoint.name!r} does not fit into the memory of {device}. "
                "Give a smaller model or device='cpu'."
            ) from error
    return loaded


def _config(source: str, name: str, *, is_folder: bool) -> PretrainedConfig:
    try:
        if not is_folder and not try_to_load_from_cache(source, "config.json"):
            # One question with a time limit: from_pretrained would retry each file for long.
            HfApi().model_info(source, timeout=10)
        config: PretrainedConfig = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # Hub, network, file and config errors share no base class.
        advice = (
            "The folder must hold a transformers model."
            if is_folder
            else "Give the folder of a downloaded model, or check the name and the network."
        )
        raise ModelError(f"Could not open {name!r}: {first_line(error)} {advice}") from error
    return config


def _check_generates(config: PretrainedConfig, name: str) -> None:
    known = (
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        if config.is_encoder_decoder
        else MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    )
    architectures = config.architectures or [known.get(config.model_type, config.model_type)]
    if not set(architectures) & set(known.values()):
        raise ModelError(
            f"{name!r} must be a model that generates text, such as T5 or GPT. "
            f"Got {architectures[0]} instead."
        )


def _check_weights(folder: Path, name: str) -> None:
    if not _files(folder, "*.safetensors"):
        others = [path.name for path in _files(folder, "*.bin", "*.pt")]
        raise ModelError(
            f"{name!r} must hold its weights in the safetensors format, which runs no code when it "
            f"is read. Got {', '.join(others) or 'no weights'} instead; "
            "save the model again with save_pretrained of transformers."
        )


def _tokenizer(source: str, name: str, commit: str | None) -> PreTrainedTokenizerBase:
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source, revision=commit or "main", trust_remote_code=False
        )
    except Exception as error:  # likewise
        raise ModelError(f"{name!r} has no tokenizer: {first_line(error)}") from error
    if len(tokenizer) - len(set(tokenizer.all_special_ids)) < _FEWEST_TOKENS:
        raise ModelError(
            f"{name!r} has no tokenizer: its files must stand beside the weights, such as "
            "tokenizer.json. Save the tokenizer into the same folder."
        )
    if tokenizer.pad_token_id is None:  # masked wherever it stands, so any token will do
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    return tokenizer


def _greedy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_new_tokens: int
) -> GenerationConfig:
    """A generation config without penalties, beams, sampling or forced tokens."""
    own: Any = model.generation_config
    listed = own.eos_token_id if isinstance(own.eos_token_id, list) else [own.eos_token_id]
    ends = {end for end in (*listed, tokenizer.eos_token_id) if end is not None}
    return GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        use_cache=True,
        bos_token_id=own.bos_token_id,
        eos_token_id=sorted(ends) or None,
        pad_token_id=tokenizer.pad_token_id,
        decoder_start_token_id=own.decoder_start_token_id,
    )


def _files(folder: Path, *patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
