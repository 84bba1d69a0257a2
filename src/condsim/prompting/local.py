"""A language model on this machine, run with Hugging Face transformers."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
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

from condsim.errors import BackendError, InputError, ModelError, require
from condsim.io import expanded, sha256_of
from condsim.model.precision import uses_bfloat16
from condsim.prompting.backend import Answer
from condsim.prompting.settings import PromptSettings

# Prompts that are read ahead and sorted by length.
_PROMPTS_PER_WINDOW = 4096
# Maximum tokens of a batch: prompts padded to the longest of them, and answers. Halved when a GPU's
# memory is too small. Larger batches are no faster on a CPU.
_GPU_TOKENS_PER_BATCH = 16_384
_CPU_TOKENS_PER_BATCH = 4096
# Tokenizers without a limit of their own report 10**30.
_UNLIMITED_TOKENS = 10**9
# Without its files, transformers makes a tokenizer of a few special tokens.
_MIN_ORDINARY_TOKENS = 10
# Files that decide an answer: weights, config, end tokens, tokenizer, chat template.
_REVISION_FILES = (
    *("config.json", "generation_config.json", "*.safetensors", "tokenizer*", "*.jinja"),
    *("added_tokens.json", "special_tokens_map.json", "vocab*", "merges.txt", "*.model"),
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


class LocalBackend:
    """Answers prompts with a sequence-to-sequence or causal model, greedily (C-STS, A.3).

    Prompts are sorted by length and run in batches of about equal size, the longest first, so that
    too little memory shows at once. The batch of a prompt changes its answer only by rounding. The
    weights must be safetensors or GGUF, and code that comes with a model is not run.

    Attributes:
        name: Name of the model's folder or GGUF file, or its name on the Hub.
        max_new_tokens: Longest answer in tokens.
        longest_prompt: Maximum tokens of a prompt with its chat template; None for no limit.
        answer_gap: Nothing for an encoder-decoder, a space for a causal model.
        notes: Empty: the model is asked greedily.
    """

    def __init__(self, settings: PromptSettings) -> None:
        """Open config and tokenizer; ``check`` or the first prompt loads the weights."""
        self._device = _device(settings.device)
        self._checkpoint = open_checkpoint(settings.model)
        self._tokenizer: Any = self._checkpoint.tokenizer
        self._chat = bool(self._tokenizer.chat_template)
        self.name = self._checkpoint.name
        self.max_new_tokens = settings.max_new_tokens
        self.answer_gap = "" if self._checkpoint.seq2seq else " "
        self.notes: tuple[str, ...] = ()
        on_cpu = self._device.type == "cpu"
        self._tokens_per_batch = _CPU_TOKENS_PER_BATCH if on_cpu else _GPU_TOKENS_PER_BATCH
        self.longest_prompt = longest_prompt(self._checkpoint, settings.max_new_tokens)
        if self.longest_prompt is not None and self.longest_prompt < 1:
            raise InputError(
                f"An answer of {self.max_new_tokens:,} tokens leaves {self.name!r} no room for the "
                "prompt; ask for a shorter one (max_new_tokens)."
            )
        try:
            with quiet():
                self.count_tokens("Output:")
        # Templates raise errors of any kind.
        except Exception as error:
            raise ModelError(
                f"The chat template of {self.name!r} must take one message of a user: "
                f"{_first_line(error)}"
            ) from error

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything except the prompt that decides an answer; reads a folder's weights once."""
        dtype = str(self._checkpoint.dtype_on(self._device)).removeprefix("torch.")
        return {
            "backend": "local",
            "model": self.name,
            "revision": self._checkpoint.revision(),
            "max_new_tokens": str(self.max_new_tokens),
            "chat": "yes" if self._chat else "no",
            "dtype": dtype,
        }

    def check(self) -> None:
        """Load the weights."""
        _ = self._model

    def count_tokens(self, prompt: str) -> int:
        """Count the tokens of a prompt, with special tokens and chat template."""
        return len(self._encode([prompt])[0])

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Yield indices and answers after each batch; longer prompts of a window come first."""
        unread = iter(prompts)
        start = 0
        while window := list(islice(unread, _PROMPTS_PER_WINDOW)):
            rows = self._encode(window)
            self._check_lengths(rows, start)
            for index, answer in self._answer_window(rows, probabilities):
                yield start + index, answer
            start += len(window)

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401
        return load_weights(self._checkpoint, self._device, max_new_tokens=self.max_new_tokens)

    @cached_property
    def _value_of_token(self) -> dict[int, float]:
        text_config = self._checkpoint.config.get_text_config(decoder=True)
        return number_tokens(self._checkpoint.tokenizer, text_config.vocab_size)

    def _encode(self, prompts: list[str]) -> list[list[int]]:
        tokenizer = self._tokenizer
        if self._chat:
            # A template that can leave out a model's thinking does: 20 tokens are too few for it.
            prompts = [
                tokenizer.apply_chat_template(
                    [{"role": "user", "content": prompt}],
                    tokenize=False,
                    add_generation_prompt=True,
                    enable_thinking=False,
                )
                for prompt in prompts
            ]
        # A template has written the special tokens already.
        encoded = tokenizer(prompts, add_special_tokens=not self._chat, verbose=False)
        # A model needs at least one token to start from.
        starts = [tokenizer.bos_token_id, tokenizer.eos_token_id, 0]
        start = next(token for token in starts if token is not None)
        return [tokens or [start] for tokens in encoded["input_ids"]]

    def _check_lengths(self, rows: Sequence[Sequence[int]], start: int) -> None:
        for index, row in enumerate(rows, start):
            if self.longest_prompt is not None and len(row) > self.longest_prompt:
                raise InputError(
                    f"A prompt for {self.name!r} must have at most {self.longest_prompt:,} tokens; "
                    f"prompt {index} (counted from 0) has {len(row):,}. Give fewer shots or a "
                    "shorter instruction."
                )

    def _answer_window(
        self, rows: Sequence[Sequence[int]], probabilities: bool
    ) -> Iterator[tuple[int, Answer]]:
        """Answer tokenized prompts in batches, the longest first."""
        order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
        done = 0
        while done < len(order):
            row_tokens = len(rows[order[done]]) + self.max_new_tokens
            batch = order[done : done + max(1, self._tokens_per_batch // row_tokens)]
            answers = self._answer_batch([rows[index] for index in batch], probabilities)
            if answers is not None:
                yield from zip(batch, answers, strict=True)
                done += len(batch)
            elif len(batch) == 1:
                raise BackendError(
                    f"{self.name!r} has too little memory on {self._device} for one prompt of "
                    f"{len(rows[batch[0]]):,} tokens. Give fewer shots, a smaller model or the "
                    "processor (cpu)."
                )
            else:
                self._tokens_per_batch = max(1, len(batch) * row_tokens // 2)

    def _answer_batch(
        self, rows: Sequence[Sequence[int]], probabilities: bool
    ) -> list[Answer] | None:
        """Answer one batch; None if the device's memory is too small for it."""
        recorder = NumberRecorder(self._value_of_token, self._device) if probabilities else None
        try:
            generated: Tensor | None = self._generate(rows, recorder)  # (n, steps)
        except torch.OutOfMemoryError:
            generated = None
        except (RuntimeError, ValueError, IndexError) as error:
            reason = _first_line(error)
            raise BackendError(f"{self.name!r} failed on {self._device}: {reason}") from error
        if generated is None:
            # No frame of the failed run holds tensors here, so their memory can be freed.
            torch.cuda.empty_cache()
            return None
        ends = set(self._model.generation_config.eos_token_id or ())
        answers = []
        for index, (row, tokens) in enumerate(zip(rows, generated.tolist(), strict=True)):
            length = next((n for n, token in enumerate(tokens, 1) if token in ends), len(tokens))
            tokens = tokens[:length]
            text = str(self._tokenizer.decode(tokens, skip_special_tokens=True))
            shares = None if recorder is None else recorder.at_first_number(index, tokens)
            answers.append(Answer(text, shares, len(row), length))
        return answers

    def _generate(
        self, rows: Sequence[Sequence[int]], recorder: NumberRecorder | None
    ) -> Tensor:
        """Generate the new tokens of a batch, (n, steps), padded behind the end."""
        seq2seq = self._checkpoint.seq2seq
        inputs = self._tokenizer.pad(
            {"input_ids": rows},
            padding_side="right" if seq2seq else "left",
            return_attention_mask=True,
            return_tensors="pt",
            verbose=False,
        ).to(self._device)
        with quiet(), torch.inference_mode():
            output: Tensor = self._model.generate(
                **inputs, logits_processor=[] if recorder is None else [recorder]
            )
        return output[:, 1 if seq2seq else inputs["input_ids"].shape[1] :].cpu()


def number_tokens(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> dict[int, float]:
    """Map tokens that are a number by themselves to it: ``4``, `` 4`` and ``4.0`` are all 4."""
    special = set(tokenizer.all_special_ids)
    value_of_token: dict[int, float] = {}
    for text, token in tokenizer.get_vocab().items():
        if token < vocabulary and token not in special and re.search("[0-9]", text):
            decoded = str(tokenizer.decode([token])).strip()
            if _NUMBER.fullmatch(decoded):
                value_of_token[token] = float(decoded)
    return value_of_token


class NumberRecorder(LogitsProcessor):
    """Records the probability of each number at each step of a batch, and changes nothing.

    All scores of a batch would be gigabytes: 20 steps of 150,000 tokens for every prompt.
    """

    def __init__(self, value_of_token: Mapping[int, float], device: torch.device) -> None:
        self.values = sorted(set(value_of_token.values()))
        self.steps: list[Tensor] = []  # (batch, values) each
        self._value_of_token = value_of_token
        column = {value: number for number, value in enumerate(self.values)}
        columns = [column[value] for value in value_of_token.values()]
        self._tokens = torch.tensor(list(value_of_token), dtype=torch.long, device=device)
        self._columns = torch.tensor(columns, dtype=torch.long, device=device)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Record one step."""
        total = scores.logsumexp(dim=-1, keepdim=True)  # (batch, 1)
        shares = (scores[:, self._tokens] - total).exp()  # (batch, tokens)
        by_value = shares.new_zeros(len(shares), len(self.values))  # (batch, values)
        self.steps.append(by_value.index_add_(1, self._columns, shares))
        return scores

    def at_first_number(self, row: int, tokens: Sequence[int]) -> dict[float, float]:
        """Return the probabilities at the first token of a row that is a number."""
        for token, step in zip(tokens, self.steps, strict=False):
            if token in self._value_of_token:
                pairs = zip(self.values, step[row].tolist(), strict=True)
                return {value: min(share, 1.0) for value, share in pairs if share > 0}
        return {}


@dataclass(frozen=True)
class Checkpoint:
    """A model whose weights are not loaded yet.

    Attributes:
        source: Folder or Hub name to load from.
        name: Name of the folder or GGUF file, or the Hub name.
        commit: Commit on the Hub; None for a folder.
        config: Config of the model.
        tokenizer: Tokenizer with a padding token.
        gguf: Name of the file in the folder that has weights, config and tokenizer, if any.
    """

    source: str
    name: str
    commit: str | None
    config: PretrainedConfig
    tokenizer: PreTrainedTokenizerBase
    gguf: str | None = None

    @property
    def seq2seq(self) -> bool:
        """Whether an encoder reads the prompt; else the model continues it."""
        return bool(self.config.is_encoder_decoder)

    def revision(self) -> str:
        """Return the version of the model; reads the weights of a folder once."""
        if self.commit is not None:
            return self.commit
        digest = hashlib.sha256()
        for path in _files(Path(self.source), *([self.gguf] if self.gguf else _REVISION_FILES)):
            digest.update(f"{path.name} {path.stat().st_size} {sha256_of(path)}\n".encode())
        return digest.hexdigest()[:12]

    def dtype_on(self, device: torch.device) -> torch.dtype:
        """Return the number format to compute in; GGUF weights have fewer bits than any."""
        dtype = self.config.dtype or self.config.get_text_config(decoder=True).dtype
        if self.gguf:
            dtype = torch.bfloat16
        elif not isinstance(dtype, torch.dtype):
            dtype = torch.float32
        if device.type != "cpu" or (dtype == torch.bfloat16 and uses_bfloat16("auto")):
            return dtype
        return torch.float32


@contextmanager
def quiet() -> Iterator[None]:
    """Hide progress bars, log lines and Python warnings of transformers."""
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


def open_checkpoint(model: str | Path) -> Checkpoint:
    """Open config and tokenizer of a folder, a GGUF file or a Hub name."""
    folder = expanded(model)
    gguf = _gguf_file(folder)
    if gguf and folder.is_file():
        folder = folder.parent
    is_folder = folder.is_dir()
    looks_local = isinstance(model, Path) or model.startswith((".", "/", "~"))
    if not str(model).strip() or (not is_folder and (looks_local or str(model).count("/") > 1)):
        raise ModelError(
            f"There is no model folder {str(model)!r}. Give a folder with a transformers model, a "
            "GGUF file, or a name on the Hub (owner/name)."
        )
    source = str(folder) if is_folder else str(model)
    name = gguf or (folder.resolve().name if is_folder else str(model))
    with quiet():
        try:
            if not is_folder and not try_to_load_from_cache(source, "config.json"):
                # One question with a time limit: from_pretrained would retry each file for long.
                HfApi().model_info(source, timeout=10)
            config = AutoConfig.from_pretrained(source, gguf_file=gguf, trust_remote_code=False)
            commit = None if is_folder else getattr(config, "_commit_hash", None) or "main"
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
                source, revision=commit or "main", gguf_file=gguf, trust_remote_code=False
            )
        # Errors of the Hub, the network, files and configs have no base class in common.
        except Exception as error:
            raise ModelError(f"Could not open the model {name!r}: {_first_line(error)}") from error
    _check_generates(config, name)
    if len(tokenizer) - len(set(tokenizer.all_special_ids)) < _MIN_ORDINARY_TOKENS:
        raise ModelError(f"{name!r} has no tokenizer: tokenizer.json or the like is missing.")
    if tokenizer.pad_token_id is None:
        # Padding is masked, so any token can stand for it.
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    return Checkpoint(source, name, commit, config, tokenizer, gguf)


def load_weights(
    checkpoint: Checkpoint, device: torch.device, *, max_new_tokens: int
) -> PreTrainedModel:
    """Load a model for greedy generation, whatever its generation_config.json says."""
    loader: Any = AutoModelForSeq2SeqLM if checkpoint.seq2seq else AutoModelForCausalLM
    # transformers has no switch for the progress bar of GGUF.
    with quiet(), redirect_stderr(io.StringIO()):
        try:
            model, info = loader.from_pretrained(
                checkpoint.source,
                revision=checkpoint.commit or "main",
                dtype=checkpoint.dtype_on(device),
                use_safetensors=True,
                gguf_file=checkpoint.gguf,
                trust_remote_code=False,
                output_loading_info=True,
            )
            loaded: PreTrainedModel = model.eval().to(device)
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"{checkpoint.name!r} does not fit into the memory of {device}. Give a smaller "
                "model or device='cpu'."
            ) from error
        # As above.
        except Exception as error:
            raise ModelError(
                f"Could not load the weights of {checkpoint.name!r}, which must be in the "
                f"safetensors or GGUF format: {_first_line(error)}"
            ) from error
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"{checkpoint.name!r} lacks {len(missing)} weights of a generating model, such as "
            f"{missing[0]}; download it again."
        )
    loaded.generation_config = _greedy(loaded, checkpoint.tokenizer, max_new_tokens)
    return loaded


def longest_prompt(checkpoint: Checkpoint, max_new_tokens: int) -> int | None:
    """Return the maximum tokens of a prompt; None for no limit."""
    config = checkpoint.config
    # T5 and its kin have relative positions and no last one. The 512 of their tokenizers is the
    # length they were first trained at; few-shot prompts are longer, and FLAN was trained on those.
    if getattr(config, "relative_attention_num_buckets", None):
        return None
    text_config = config.get_text_config(decoder=not config.is_encoder_decoder)
    positions = getattr(text_config, "max_position_embeddings", None) or _UNLIMITED_TOKENS
    longest = int(min(positions, checkpoint.tokenizer.model_max_length or _UNLIMITED_TOKENS))
    if longest >= _UNLIMITED_TOKENS:
        return None
    return longest if config.is_encoder_decoder else longest - max_new_tokens


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"device must be one that torch can use here, such as 'cpu' or 'cuda'; got {name!r}: "
            f"{_first_line(error)}"
        ) from error
    return device


def _gguf_file(model: Path) -> str | None:
    """Return the name of the GGUF file at a path, or in a folder without other weights."""
    files = [model] if model.is_file() and model.suffix == ".gguf" else _files(model, "*.gguf")
    if not files or _files(model, "*.safetensors"):
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ModelError(f"{str(model)!r} has several GGUF files; name one of {names}.")
    require("gguf", extra="llm")
    return files[0].name


def _check_generates(config: PretrainedConfig, name: str) -> None:
    class_names = (
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        if config.is_encoder_decoder
        else MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    )
    default = class_names.get(config.model_type, config.model_type)
    architectures = config.architectures or [default]
    if not set(architectures) & set(class_names.values()):
        raise ModelError(
            f"{name!r} must be a model that generates text, such as T5 or GPT; got "
            f"{architectures[0]}."
        )


def _greedy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_new_tokens: int
) -> GenerationConfig:
    """Make a generation config without penalties, beams, sampling or forced tokens."""
    original: Any = model.generation_config
    ends = original.eos_token_id if isinstance(original.eos_token_id, list) else []
    ends = {*ends, tokenizer.eos_token_id}
    if not isinstance(original.eos_token_id, list):
        ends.add(original.eos_token_id)
    return GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        use_cache=True,
        bos_token_id=original.bos_token_id,
        eos_token_id=sorted(ends - {None}) or None,
        pad_token_id=tokenizer.pad_token_id,
        decoder_start_token_id=original.decoder_start_token_id,
    )


def _files(folder: Path, *patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
