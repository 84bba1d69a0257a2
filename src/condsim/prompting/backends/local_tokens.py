"""Prompts as tokens, and the tokens that are numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, PretrainedConfig, PreTrainedTokenizerBase

from condsim.errors import ModelError

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

_NO_LIMIT = 10**9  # tokenizers without a limit of their own say 10**30


def first_line(error: BaseException) -> str:
    """The first line of an error, or the name of its type."""
    return str(error).strip().split("\n")[0] or type(error).__name__


class PromptTokenizer:
    """Turns prompts into the tokens a model sees.

    Attributes:
        chat: Whether prompts are put into the tokenizer's chat template.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, name: str) -> None:
        self._tokenizer: Any = tokenizer  # its call takes more than the base class says
        self.chat = bool(tokenizer.chat_template)
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
        """Tokenises prompts, whole.

        A template that can leave out a model's thinking does: 20 tokens are too few for it.
        """
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

    def decode(self, ids: Sequence[int]) -> str:
        """Text of generated tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))


def longest_prompt(
    config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, *, max_new_tokens: int
) -> int | None:
    """How many tokens of prompt a model takes.

    T5 and its kin have relative positions and no last one. The 512 of their tokenizers is the
    length they were first trained at; few-shot prompts are longer, and FLAN was trained on those.
    """
    if getattr(config, "relative_attention_num_buckets", None):
        return None
    text_config = config.get_text_config(decoder=not config.is_encoder_decoder)
    positions = getattr(text_config, "max_position_embeddings", None)
    limits = [limit for limit in (positions, tokenizer.model_max_length) if limit]
    longest = int(min(limits, default=_NO_LIMIT))
    if longest >= _NO_LIMIT:
        return None
    return longest if config.is_encoder_decoder else longest - max_new_tokens


def padded(
    rows: Sequence[Sequence[int]], *, pad: int, left: bool, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Lays rows of tokens beside each other."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), pad, dtype=torch.long)  # (n, longest)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        place = slice(longest - len(row), None) if left else slice(len(row))
        ids[number, place] = torch.tensor(row, dtype=torch.long)
        mask[number, place] = 1
    return ids.to(device), mask.to(device)


class Numbers:
    """The tokens of a vocabulary that read as a number by themselves.

    Attributes:
        value_of: Value of each such token id: ``4``, `` 4`` and ``4.0`` are three tokens of 4.
        values: The distinct values, ascending.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, vocabulary: int) -> None:
        special = set(tokenizer.all_special_ids)
        self.value_of: dict[int, float] = {}
        for token, id_ in tokenizer.get_vocab().items():
            if (
                id_ >= vocabulary
                or id_ in special
                or not any(sign in token for sign in "0123456789")
            ):
                continue
            text = str(tokenizer.decode([id_])).strip()
            if _NUMBER.fullmatch(text):
                self.value_of[id_] = float(text)
        self.values = sorted(set(self.value_of.values()))


class NumberMass(LogitsProcessor):
    """Keeps the probability of each number at each step, and changes nothing.

    All scores of a batch would be gigabytes: 20 steps of 150,000 tokens for every prompt.

    Attributes:
        steps: For each step the probabilities of ``Numbers.values``, (batch, values).
    """

    def __init__(self, numbers: Numbers, *, device: torch.device) -> None:
        column = {value: number for number, value in enumerate(numbers.values)}
        columns = [column[value] for value in numbers.value_of.values()]
        self._ids = torch.tensor(list(numbers.value_of), dtype=torch.long, device=device)
        self._columns = torch.tensor(columns, dtype=torch.long, device=device)
        self._values = len(column)
        self.steps: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Notes one step."""
        total = scores.logsumexp(dim=-1, keepdim=True)  # (batch, 1)
        mass = (scores[:, self._ids] - total).exp()  # (batch, tokens)
        by_value = mass.new_zeros(len(mass), self._values)  # (batch, values)
        self.steps.append(by_value.index_add_(1, self._columns, mass))
        return scores
