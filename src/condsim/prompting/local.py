"""A language model on this machine, run with Hugging Face transformers."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from condsim.errors import BackendError, InputError
from condsim.prompting.backend import Answer
from condsim.prompting.local_model import (
    NumberMass,
    Numbers,
    PromptTokenizer,
    device_for,
    first_line,
    load_weights,
    longest_prompt,
    open_checkpoint,
    quiet,
)
from condsim.prompting.settings import PromptSettings

_WINDOW = 4096  # prompts that are read ahead and sorted
# Most tokens of a batch: prompts padded to the longest of them, and answers. It is halved when a
# GPU's memory is too small; a longer prompt is a batch of its own.
_BATCH_TOKENS = 16_384
_CPU_BATCH_TOKENS = 4096  # as fast as more


class LocalBackend:
    """Answers prompts with a sequence-to-sequence or causal model, greedily (C-STS, A.3).

    Prompts are sorted by length and run in batches of about equal size, the longest first, so that
    too little memory shows at once. The batch a prompt is in changes its answer only by rounding.

    Attributes:
        name: Name of the model's folder, or its name on the Hub.
        max_new_tokens: Longest answer in tokens.
        longest_prompt: Most tokens of a prompt, the chat template among them; None for no limit.
        answer_gap: Nothing for an encoder-decoder, a space for a causal model.
        notes: Nothing: the model is asked greedily.
    """

    def __init__(self, settings: PromptSettings) -> None:
        """Opens a model; its weights are loaded by ``check`` or with the first prompt.

        The weights must be safetensors or GGUF, and code that comes with a model is not run.

        Raises:
            InputError: If there is no such device, or a prompt leaves no room for the answer.
            ModelError: If there is no such model, it generates no text, its tokenizer is missing or
                its weights are of another format.
            MissingExtraError: If the weights are GGUF and ``gguf`` is not installed.
        """
        self._device = device_for(settings.device)
        self._checkpoint = open_checkpoint(settings.model)
        self.name = self._checkpoint.name
        self.max_new_tokens = settings.max_new_tokens
        self.answer_gap = "" if self._checkpoint.seq2seq else " "
        self.notes: tuple[str, ...] = ()
        self._batch_tokens = _CPU_BATCH_TOKENS if self._device.type == "cpu" else _BATCH_TOKENS
        with quiet():
            self._tokenizer = PromptTokenizer(self._checkpoint.tokenizer, name=self.name)
        self.longest_prompt = longest_prompt(
            self._checkpoint.config, self._checkpoint.tokenizer, max_new_tokens=self.max_new_tokens
        )
        if self.longest_prompt is not None and self.longest_prompt < 1:
            longest = self.longest_prompt + self.max_new_tokens
            raise InputError(
                f"{self.name!r} takes {longest:,} tokens, prompt and answer together. An answer of "
                f"{self.max_new_tokens:,} leaves none for the prompt; ask for a shorter one "
                "(max_new_tokens)."
            )

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """What decides an answer beside the prompt; reads a folder's weights once through."""
        dtype = str(self._checkpoint.dtype_on(self._device)).removeprefix("torch.")
        return {
            "backend": "local",
            "model": self.name,
            "revision": self._checkpoint.revision(),
            "max_new_tokens": str(self.max_new_tokens),
            "chat": "yes" if self._tokenizer.chat else "no",
            "dtype": dtype,
        }

    def check(self) -> None:
        """Loads the weights.

        Raises:
            ModelError: If they cannot be loaded or are not all there.
        """
        _ = self._model

    def count_tokens(self, prompt: str) -> int:
        """Exact tokens of a prompt, with special tokens and chat template; needs no weights."""
        return len(self._tokenizer.encode([prompt])[0])

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Answers prompts.

        Args:
            prompts: The prompts; read a window ahead.
            probabilities: See `Backend.answers`.

        Yields:
            Place and answer, after each batch; longer prompts of a window come first.

        Raises:
            InputError: If a prompt is longer than the model takes; nothing of its window is asked.
            ModelError: If the weights cannot be loaded.
            BackendError: If the model fails, or the memory is too small for a single prompt.
        """
        remaining = iter(prompts)
        start = 0
        while window := list(islice(remaining, _WINDOW)):
            rows = self._tokenizer.encode(window)
            self._check_lengths(rows, start)
            for number, answer in self._answer_window(rows, probabilities=probabilities):
                yield start + number, answer
            start += len(window)

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - transformers types no generating model
        return load_weights(
            self._checkpoint, device=self._device, max_new_tokens=self.max_new_tokens
        )

    @cached_property
    def _numbers(self) -> Numbers:
        text_config = self._checkpoint.config.get_text_config(decoder=True)
        return Numbers(self._checkpoint.tokenizer, vocabulary=text_config.vocab_size)

    def _check_lengths(self, rows: Sequence[Sequence[int]], start: int) -> None:
        for number, row in enumerate(rows):
            if self.longest_prompt is not None and len(row) > self.longest_prompt:
                raise InputError(
                    f"A prompt for {self.name!r} must have at most {self.longest_prompt:,} tokens. "
                    f"Prompt {start + number} (counted from 0) has {len(row):,}; give fewer shots "
                    "or a shorter instruction."
                )

    def _answer_window(
        self, rows: Sequence[Sequence[int]], *, probabilities: bool
    ) -> Iterator[tuple[int, Answer]]:
        """Answers tokenised prompts in batches, the longest first."""
        order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
        done = 0
        while done < len(order):
            tokens = len(rows[order[done]]) + self.max_new_tokens  # of the longest one left
            batch = order[done : done + max(1, self._batch_tokens // tokens)]
            answers = self._answer_batch([rows[number] for number in batch], probabilities)
            if answers is not None:
                yield from zip(batch, answers, strict=True)
                done += len(batch)
            elif len(batch) == 1:
                raise BackendError(
                    f"{self.name!r} has too little memory on {self._device} for one prompt of "
                    f"{tokens - self.max_new_tokens:,} tokens. Give fewer shots, a smaller model "
                    "or the processor (cpu)."
                )
            else:
                self._batch_tokens = max(1, len(batch) * tokens // 2)

    def _answer_batch(
        self, rows: Sequence[Sequence[int]], probabilities: bool
    ) -> list[Answer] | None:
        """Answers one batch; None if the device's memory is too small for it."""
        mass = NumberMass(self._numbers, device=self._device) if probabilities else None
        try:
            generated = self._generate(rows, mass)  # (n, steps)
        except torch.OutOfMemoryError:
            generated = None
        except (RuntimeError, ValueError, IndexError) as error:
            reason = first_line(error)
            raise BackendError(f"{self.name!r} failed on {self._device}: {reason}") from error
        if generated is None:
            torch.cuda.empty_cache()  # here, where no frame of the failed run holds tensors
            return None
        steps = None if mass is None else torch.stack(mass.steps, dim=1).cpu()  # (n, steps, values)
        ends = set(self._model.generation_config.eos_token_id or ())
        answers = []
        for number, (row, new) in enumerate(zip(rows, generated.tolist(), strict=True)):
            length = next((place + 1 for place, id_ in enumerate(new) if id_ in ends), len(new))
            ids = new[:length]
            shares = None if steps is None else self._number_shares(ids, steps[number])
            answers.append(Answer(self._tokenizer.decode(ids), shares, len(row), length))
        return answers

    def _generate(self, rows: Sequence[Sequence[int]], mass: NumberMass | None) -> Tensor:
        """New tokens of a batch, (n, steps), padded behind the end."""
        seq2seq = self._checkpoint.seq2seq
        inputs = self._tokenizer.padded(rows, left=not seq2seq).to(self._device)
        with quiet(), torch.inference_mode():
            output: Tensor = self._model.generate(
                **inputs, logits_processor=[] if mass is None else [mass]
            )
        return output[:, 1 if seq2seq else inputs["input_ids"].shape[1] :].cpu()

    def _number_shares(self, new: Sequence[int], steps: Tensor) -> dict[float, float]:
        """Probabilities of the numbers where the first one stands; steps: (steps, values)."""
        for id_, probabilities in zip(new, steps, strict=False):
            if id_ in self._numbers.value_of:
                pairs = zip(self._numbers.values, probabilities.tolist(), strict=True)
                return {
                    value: min(probability, 1.0) for value, probability in pairs if probability > 0
                }
        return {}
