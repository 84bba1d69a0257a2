"""Finding and loading a generating model: config and tokenizer first, the weights when needed."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BatchEncoding,
    GenerationConfig,
    LogitsProcessor,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)
from transformers.utils import logging

from condsim.errors import InputError, ModelError, require
from condsim.io import expanded, sha256_of
from condsim.model.precision import uses_bfloat16

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

_NO_LIMIT = 10**9  # tokenizers without a limit of their own say 10**30


def first_line(error: BaseException) -> str:
    """The first line of an error, or the name of its type."""
    return str(error).strip().split("\n")[0] or type(error).__name__


class PromptTokenizer:
    """Turns prompts into the tokens a model sees."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, name: str) -> None:
        self._tokenizer: Any = tokenizer  # its call takes more than the base class says
        self.chat = bool(tokenizer.chat_template)  # prompts are put into it
        self._start = next(
            (id_ for id_ in (tokenizer.bos_token_id, tokenizer.eos_token_id) if id_ is not None), 0
        )
        try:
            self.encode(["Output:"])
        except Exception as error:  # templates raise what they like
            raise ModelError(
                f"The chat template of {name!r} must take one message of a user: "
                f"{first_line(error)}"
            ) from error

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """Tokenises prompts, whole."""
        # A template that can leave out a model's thinking does: 20 tokens are too few for it.
        texts = list(prompts)
        if self.chat:
            texts = [
                self._tokenizer.apply_chat_template(
                    [{"role": "user", "content": prompt}],
                    tokenize=False,
                    add_generation_prompt=True,
                    enable_thinking=False,
                )
                for prompt in texts
            ]
        # The template has written the special tokens already.
        encoded = self._tokenizer(texts, add_special_tokens=not self.chat, verbose=False)
        return [ids or [self._start] for ids in encoded["input_ids"]]

    def padded(self, rows: Sequence[Sequence[int]], *, left: bool) -> BatchEncoding:
        """Tokens and attention mask of several prompts, ``(n, longest)`` each."""
        padded: BatchEncoding = self._tokenizer.pad(
            {"input_ids": rows},
            padding_side="left" if left else "right",
            return_attention_mask=True,
            return_tensors="pt",
            verbose=False,
        )
        return padded

    def decode(self, ids: Sequence[int]) -> str:
        """Text of generated tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))


def longest_prompt(
    config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, *, max_new_tokens: int
) -> int | None:
    """How many tokens of prompt a model takes."""
    # T5 and its kin have relative positions and no last one. The 512 of their tokenizers is the
    # length they were first trained at; few-shot prompts are longer, and FLAN was trained on those.
    if getattr(config, "relative_attention_num_buckets", None):
        return None
    text_config = config.get_text_config(decoder=not config.is_encoder_decoder)
    positions = getattr(text_config, "max_position_embeddings", None)
    limits = [limit for limit in (positions, tokenizer.model_max_length) if limit]
    longest = int(min(limits, default=_NO_LIMIT))
    if longest >= _NO_LIMIT:
        return None
    return longest if config.is_encoder_decoder else longest - max_new_tokens


class Numbers:
    """Tokens that read as a number by themselves: ``4``, `` 4`` and ``4.0`` are three of 4."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, vocabulary: int) -> None:
        special = set(tokenizer.all_special_ids)
        self.value_of: dict[int, float] = {}
        for token, id_ in tokenizer.get_vocab().items():
            if id_ < vocabulary and id_ not in special and re.search("[0-9]", token):
                text = str(tokenizer.decode([id_])).strip()
                if _NUMBER.fullmatch(text):
                    self.value_of[id_] = float(text)
        self.values = sorted(set(self.value_of.values()))


class NumberMass(LogitsProcessor):
    """Keeps the probability of each number at each step, and changes nothing."""

    # All scores of a batch would be gigabytes: 20 steps of 150,000 tokens for every prompt.

    def __init__(self, numbers: Numbers, *, device: torch.device) -> None:
        column = {value: number for number, value in enumerate(numbers.values)}
        columns = [column[value] for value in numbers.value_of.values()]
        self._ids = torch.tensor(list(numbers.value_of), dtype=torch.long, device=device)
        self._columns = torch.tensor(columns, dtype=torch.long, device=device)
        self._values = len(column)
        self.steps: list[Tensor] = []  # probabilities of ``Numbers.values``, (batch, values) each

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Notes one step."""
        total = scores.logsumexp(dim=-1, keepdim=True)  # (batch, 1)
        mass = (scores[:, self._ids] - total).exp()  # (batch, tokens)
        by_value = mass.new_zeros(len(mass), self._values)  # (batch, values)
        self.steps.append(by_value.index_add_(1, self._columns, mass))
        return scores


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
    gguf: str | None = None  # file in the folder that holds weights, config and tokenizer

    @property
    def seq2seq(self) -> bool:
        """Whether an encoder reads the prompt; else the model goes on writing it."""
        return bool(self.config.is_encoder_decoder)

    def revision(self) -> str:
        """Version of the model; reads the weights of a folder once through."""
        if self.commit is not None:
            return self.commit
        digest = hashlib.sha256()
        for path in _files(Path(self.source), *([self.gguf] if self.gguf else _REVISION_FILES)):
            digest.update(f"{path.name} {path.stat().st_size} {sha256_of(path)}\n".encode())
        return digest.hexdigest()[:12]

    def dtype_on(self, device: torch.device) -> torch.dtype:
        """Number format to compute in; weights in GGUF have fewer bits than any."""
        stored = self.config.dtype or self.config.get_text_config(decoder=True).dtype
        stored = torch.bfloat16 if self.gguf else stored
        dtype = stored if isinstance(stored, torch.dtype) else torch.float32
        if device.type != "cpu":
            return dtype
        return dtype if dtype == torch.bfloat16 and uses_bfloat16("auto") else torch.float32


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps bars, log lines and Python warnings of transformers from the screen."""
    # Not that of `condsim.model`, which needs sentence-transformers, as this extra does not.
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


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
    folder = expanded(model)
    gguf = _gguf_file(folder)
    folder = folder.parent if folder.is_file() and gguf else folder
    is_folder = folder.is_dir()
    looks_local = isinstance(model, Path) or model.startswith((".", "/", "~"))
    if not is_folder and (looks_local or str(model).count("/") > 1):
        raise ModelError(
            f"There is no model folder {str(model)!r}. Give a folder that holds a transformers "
            "model, or a name on the Hub (owner/name)."
        )
    source = str(folder) if is_folder else str(model)
    name = gguf or (folder.resolve().name if is_folder else str(model))
    with quiet():
        config = _config(source, name, gguf, is_folder=is_folder)
        commit = None if is_folder else getattr(config, "_commit_hash", None) or "main"
        _check_generates(config, name)
        if is_folder and not gguf:
            _check_weights(folder, name)
        tokenizer = _tokenizer(source, name, commit, gguf)
    return Checkpoint(source, name, commit, config, tokenizer, gguf)


def _gguf_file(model: Path) -> str | None:
    """The GGUF file that a path is, or that a folder without other weights holds."""
    files = [model] if model.is_file() and model.suffix == ".gguf" else _files(model, "*.gguf")
    if not files or _files(model, "*.safetensors"):
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ModelError(f"{str(model)!r} must hold one GGUF file. Got {names}; name one of them.")
    require("gguf", extra="llm")
    return files[0].name


def load_weights(
    checkpoint: Checkpoint, *, device: torch.device, max_new_tokens: int
) -> PreTrainedModel:
    """Loads a model for greedy generation, whatever its generation_config.json says."""
    loader: Any = AutoModelForSeq2SeqLM if checkpoint.seq2seq else AutoModelForCausalLM
    with quiet(), redirect_stderr(io.StringIO()):  # a bar of GGUF has no switch
        try:
            model, found = loader.from_pretrained(
                checkpoint.source,
                revision=checkpoint.commit or "main",
                dtype=checkpoint.dtype_on(device),
                use_safetensors=True,
                gguf_file=checkpoint.gguf,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except Exception as error:  # Hub, network and file errors share no base class.
            raise ModelError(
                f"Could not load the weights of {checkpoint.name!r}, which must be in the "
                f"safetensors or GGUF format: {first_line(error)}"
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


def _config(source: str, name: str, gguf: str | None, *, is_folder: bool) -> PretrainedConfig:
    try:
        if not is_folder and not try_to_load_from_cache(source, "config.json"):
            # One question with a time limit: from_pretrained would retry each file for long.
            HfApi().model_info(source, timeout=10)
        config: PretrainedConfig = AutoConfig.from_pretrained(
            source, gguf_file=gguf, trust_remote_code=False
        )
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


def _tokenizer(
    source: str, name: str, commit: str | None, gguf: str | None
) -> PreTrainedTokenizerBase:
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source, revision=commit or "main", gguf_file=gguf, trust_remote_code=False
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
