"""Taking pairs of texts apart, and finding the texts that occur more than once in a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from condsim.encoders.conditioning import Order
from condsim.errors import InputError

__all__ = ["distinct_rows", "split_pairs", "tokenise"]


def split_pairs(pairs: Sequence[Sequence[str]], *, order: Order) -> tuple[list[str], list[str]]:
    """Takes conditional sentences apart.

    Args:
        pairs: Pairs of texts, length n.
        order: Which text of a pair comes first.

    Returns:
        Sentences and conditions, each of length n.

    Raises:
        InputError: If an input is not a pair of texts.
    """
    for row, pair in enumerate(pairs):
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"A tri-encoder takes pairs of texts, condition and sentence ({order}). "
                f"Got {pair!r} in row {row} instead."
            )
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return (second, first) if order == "condition-first" else (first, second)


def tokenise(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], *, max_length: int | None
) -> dict[str, Tensor]:
    """Tokenises single texts, padded to the longest.

    Args:
        tokenizer: The backbone's tokenizer.
        texts: Texts, length n.
        max_length: Longest text in tokens; that of the tokenizer if None.

    Returns:
        ``input_ids`` and ``attention_mask``, (n, length).
    """
    return dict(
        tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=max_length,
            return_token_type_ids=False,
            return_tensors="pt",
        )
    )


def distinct_rows(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the distinct rows of a matrix.

    Args:
        tokens: (n, length) of integers.

    Returns:
        For each distinct row the number of the first row that equals it, (distinct,); and for each
        of the n rows its place in that list, (n,).
    """
    _, row_of = torch.unique(tokens, dim=0, return_inverse=True)  # (n,)
    rows = torch.arange(tokens.shape[0], device=tokens.device)
    none = rows.new_full((int(row_of.max()) + 1,), tokens.shape[0])
    return none.scatter_reduce(0, row_of, rows, "amin"), row_of
