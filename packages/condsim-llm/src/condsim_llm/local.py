"""A language model on this machine, run with Hugging Face transformers."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
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
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from condsim.errors import InputError, ModelError, one_line, reason_of, require
from condsim.model.precision import uses_bfloat16
from condsim.paths import expanded, sha256_of
from condsim_llm.backend import Answer, PromptSettings
from condsim_llm.errors import BackendError

# Prompts that are read ahead and sorted by length.
_PROMPTS_PER_WINDOW = 4096
# Maximum tokens of a batch: prompts padded to the longest of them, and answers. Halved when a GPU's
# memory is too small. Larger batches are no faster on a CPU.
_GPU_TOKENS_PER_BATCH = 16_384
_CPU_TOKENS_PER_BATCH = 4096
# Tokenizers without a limit report 10**30.
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
    """Sequence-to-sequence or causal model that answers prompts greedily (C-STS, A.3).

    Prompts are sorted by length and run in batches of about equal size, the longest first, so that
    too little memory shows at once. The batch of a prompt changes its answer only by rounding. The
    weights must be safetensors or GGUF, and code that comes with a model is not run.
    """

    def __init__(self, settings: PromptSettings) -> None:
        """Open config and tokenizer; ``check`` or the first prompt loads the weights."""
        device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            self._device = torch.device(device)
        except RuntimeError as error:
            raise InputError(
                f"device must be one of torch's, such as 'cpu' or 'cuda'; got {device!r}."
            ) from error
        self._source, self._gguf = _locate(settings.model)
        folder = Path(self._source)
        self._folder = folder if folder.is_dir() else None
        self.name = self._gguf or (folder.resolve().name if self._folder else self._source)
        self.max_new_tokens = settings.max_new_tokens
        self.notes: tuple[str, ...] = ()
        # Errors of the Hub, the network, files, configs and templates have no base class in common.
        message = f"Could not open the model {self.name!r}"
        with one_line(message, Exception, kind=ModelError), quiet():
            self._config, self._tokenizer = self._open()
            self._seq2seq = bool(self._config.is_encoder_decoder)
            self._chat = bool(self._tokenizer.chat_template)
            # A damaged chat template shows here.
            self.count_tokens("Output:")
        if len(self._tokenizer) - len(set(self._tokenizer.all_special_ids)) < _MIN_ORDINARY_TOKENS:
            raise ModelError(
                f"{self.name!r} has no tokenizer: tokenizer.json or the like is missing."
            )
        self.longest_prompt = longest_prompt(
            self._config, self._tokenizer.model_max_length, max_new_tokens=self.max_new_tokens
        )
        self.answer_gap = "" if self._seq2seq else " "
        on_cpu = self._device.type == "cpu"
        self._tokens_per_batch = _CPU_TOKENS_PER_BATCH if on_cpu else _GPU_TOKENS_PER_BATCH

    def _open(self) -> tuple[PretrainedConfig, Any]:
        """Open config and tokenizer."""
        source, gguf = self._source, self._gguf
        if self._folder is None and not try_to_load_from_cache(source, "config.json"):
            # One question with a time limit: from_pretrained would retry each file for long.
            HfApi().model_info(source, timeout=10)
        config = AutoConfig.from_pretrained(source, gguf_file=gguf, trust_remote_code=False)
        # Commit on the Hub.
        self._revision = getattr(config, "_commit_hash", None) or "main"
        tokenizer: Any = AutoTokenizer.from_pretrained(
            source, revision=self._revision, gguf_file=gguf, trust_remote_code=False
        )
        if tokenizer.pad_token_id is None:
            # Padding is masked, so any token can stand for it.
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
        return config, tokenizer

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything except the prompt that decides an answer; reads a folder's weights once."""
        revision = self._revision
        if self._folder is not None:
            digest = hashlib.sha256()
            patterns = [self._gguf] if self._gguf else _REVISION_FILES
            for path in _matching_files(self._folder, *patterns):
                line = f"{path.name} {path.stat().st_size} {sha256_of(path)}\n"
                digest.update(line.encode())
            revision = digest.hexdigest()[:12]
        return {
            "backend": "local",
            "model": self.name,
            "revision": revision,
            "max_new_tokens": str(self.max_new_tokens),
            "chat": "yes" if self._chat else "no",
            "dtype": str(self._dtype).removeprefix("torch."),
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
            for index, answer in self._answer_window(self._encode(window), probabilities):
                yield start + index, answer
            start += len(window)

    @cached_property
    def _dtype(self) -> torch.dtype:
        """Number format to compute in; GGUF weights have fewer bits than any."""
        dtype = self._config.dtype or self._config.get_text_config(decoder=True).dtype
        if self._gguf:
            dtype = torch.bfloat16
        elif not isinstance(dtype, torch.dtype):
            dtype = torch.float32
        if self._device.type != "cpu" or (dtype == torch.bfloat16 and uses_bfloat16("auto")):
            return dtype
        return torch.float32

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401
        """The weights, prepared for greedy generation whatever generation_config.json says."""
        loader: Any = AutoModelForSeq2SeqLM if self._seq2seq else AutoModelForCausalLM
        # transformers has no switch for the progress bar of GGUF.
        with quiet(), redirect_stderr(io.StringIO()):
            message = (
                f"Could not load the weights of {self.name!r} on {self._device}, which must be of "
                "a generating model, in the safetensors or GGUF format, and fit into memory"
            )
            with one_line(message, Exception, kind=ModelError):
                model, info = loader.from_pretrained(
                    self._source,
                    revision=self._revision,
                    dtype=self._dtype,
                    use_safetensors=True,
                    gguf_file=self._gguf,
                    trust_remote_code=False,
                    output_loading_info=True,
                )
                model = model.eval().to(self._device)
        if missing := sorted(info["missing_keys"]):
            raise ModelError(
                f"{self.name!r} lacks {len(missing)} weights of a generating model, such as "
                f"{missing[0]}; download it again."
            )
        original = model.generation_config
        ends = original.eos_token_id
        ends = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id}
        # Without penalties, beams, sampling or forced tokens.
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            num_beams=1,
            use_cache=True,
            bos_token_id=original.bos_token_id,
            eos_token_id=sorted(ends - {None}) or None,
            pad_token_id=self._tokenizer.pad_token_id,
            decoder_start_token_id=original.decoder_start_token_id,
        )
        return model

    @cached_property
    def _value_of_token(self) -> dict[int, float]:
        text_config = self._config.get_text_config(decoder=True)
        return number_tokens(self._tokenizer, text_config.vocab_size)

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

    def _answer_window(
        self, rows: Sequence[Sequence[int]], probabilities: bool
    ) -> Iterator[tuple[int, Answer]]:
        """Answer tokenized prompts in batches, the longest first."""
        order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
        done = 0
        while done < len(order):
            row_tokens = len(rows[order[done]]) + self.max_new_tokens
            batch = order[done : done + max(1, self._tokens_per_batch // row_tokens)]
            try:
                answers = self._answer_batch([rows[index] for index in batch], probabilities)
            except torch.OutOfMemoryError:
                answers = []
            except (RuntimeError, ValueError, IndexError) as error:
                raise BackendError(
                    f"{self.name!r} failed on {self._device}: {reason_of(error)}"
                ) from error
            if answers:
                yield from zip(batch, answers, strict=True)
                done += len(batch)
                continue
            # No frame of the failed run holds tensors here, so their memory can be freed.
            torch.cuda.empty_cache()
            if len(batch) == 1:
                raise BackendError(
                    f"{self.name!r} has too little memory on {self._device} for one prompt of "
                    f"{len(rows[batch[0]]):,} tokens. Give fewer shots, a smaller model or the "
                    "processor (cpu)."
                )
            self._tokens_per_batch = max(1, len(batch) * row_tokens // 2)

    def _answer_batch(self, rows: Sequence[Sequence[int]], probabilities: bool) -> list[Answer]:
        recorder = NumberRecorder(self._value_of_token, self._device) if probabilities else None
        generated = self._generate(rows, recorder)  # (n, steps)
        ends = set(self._model.generation_config.eos_token_id or ())
        answers = []
        for index, (row, tokens) in enumerate(zip(rows, generated.tolist(), strict=True)):
            length = next((n for n, token in enumerate(tokens, 1) if token in ends), len(tokens))
            tokens = tokens[:length]
            text = str(self._tokenizer.decode(tokens, skip_special_tokens=True))
            shares = None if recorder is None else recorder.at_first_number(index, tokens)
            answers.append(Answer(text, shares, len(row), length))
        return answers

    def _generate(self, rows: Sequence[Sequence[int]], recorder: NumberRecorder | None) -> Tensor:
        """Generate the new tokens of a batch, (n, steps), padded behind the end."""
        inputs = self._tokenizer.pad(
            {"input_ids": rows},
            padding_side="right" if self._seq2seq else "left",
            return_attention_mask=True,
            return_tensors="pt",
            verbose=False,
        ).to(self._device)
        with quiet(), torch.inference_mode():
            output: Tensor = self._model.generate(
                **inputs, logits_processor=[] if recorder is None else [recorder]
            )
        return output[:, 1 if self._seq2seq else inputs["input_ids"].shape[1] :].cpu()


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
    """Record the probability of each number at each step of a batch, and change nothing.

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


def longest_prompt(
    config: PretrainedConfig, tokenizer_limit: float, *, max_new_tokens: int
) -> int | None:
    """Return the maximum tokens of a prompt; None for no limit."""
    # T5 and its kin have relative positions and no last one. The 512 of their tokenizers is the
    # length they were first trained at; few-shot prompts are longer, and FLAN was trained on those.
    if getattr(config, "relative_attention_num_buckets", None):
        return None
    text_config = config.get_text_config(decoder=not config.is_encoder_decoder)
    positions = getattr(text_config, "max_position_embeddings", None) or _UNLIMITED_TOKENS
    longest = int(min(positions, tokenizer_limit))
    if longest >= _UNLIMITED_TOKENS:
        return None
    return longest if config.is_encoder_decoder else longest - max_new_tokens


def _locate(model: str) -> tuple[str, str | None]:
    """Return the folder or Hub name of a model, and the name of a GGUF file in the folder."""
    path = expanded(model)
    gguf_files = [path] if path.is_file() and path.suffix == ".gguf" else []
    folder = path.parent if gguf_files else path
    if not folder.is_dir():
        if model.startswith((".", "/", "~")) or model.count("/") > 1:
            raise ModelError(
                f"There is no model folder {model!r}. Give a folder with a transformers model, a "
                "GGUF file, or a name on the Hub (owner/name)."
            )
        return model, None
    if not gguf_files and not _matching_files(folder, "*.safetensors"):
        gguf_files = _matching_files(folder, "*.gguf")
    if len(gguf_files) > 1:
        names = ", ".join(file.name for file in gguf_files)
        raise ModelError(f"{model!r} has several GGUF files; name one of them: {names}.")
    if not gguf_files:
        return str(folder), None
    require("gguf", extra="llm")
    return str(folder), gguf_files[0].name


def _matching_files(folder: Path, *patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
