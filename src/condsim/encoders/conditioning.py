"""How a sentence and its condition go into a model together. Core: needs no extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from condsim.errors import InputError, unknown_name

Order = Literal["condition-first", "sentence-first"]
"""Which of condition and sentence comes first in the pair that a tokenizer joins."""


def check_order(order: str) -> None:
    """Raises an InputError unless the order is one of the two."""
    if order not in get_args(Order):
        raise unknown_name("order", order, get_args(Order))


def conditional_sentences(
    sentences: Sequence[str], conditions: Sequence[str], *, order: Order
) -> list[list[str]]:
    """Pairs each sentence with its condition, the input of a bi- or tri-encoder.

    Args:
        sentences: Sentences, length n.
        conditions: The condition of each sentence, length n.
        order: Which of the two comes first.

    Raises:
        InputError: If the lengths differ or the order is unknown.

    Example:
        >>> conditional_sentences(["A dog runs."], ["the animal"], order="condition-first")
        [['the animal', 'A dog runs.']]
    """
    check_order(order)
    _check_lengths(sentences=sentences, conditions=conditions)
    if order == "condition-first":
        return [list(pair) for pair in zip(conditions, sentences, strict=True)]
    return [list(pair) for pair in zip(sentences, conditions, strict=True)]


def cross_encoder_pairs(
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    conditions: Sequence[str],
    *,
    separator: str,
    order: Order = "sentence-first",
) -> list[list[str]]:
    """Joins two sentences and a condition, the input of a cross-encoder.

    One sequence, ``sentence1 SEP sentence2 SEP condition`` (C-STS leaves order and separators open,
    see READING.md): the first separator is written into the text, where the tokenizer reads it as
    its special token; the second comes from encoding the pair.

    Args:
        sentences1: First sentences, length n.
        sentences2: Second sentences, length n.
        conditions: Conditions, length n.
        separator: The tokenizer's separator, put between the sentences with no space around it,
            from ``condsim.encoders.pair_separator(tokenizer)``: ``[SEP]`` or ``</s></s>``.
        order: Whether the sentences or the condition come first.

    Raises:
        InputError: If the lengths differ or the order is unknown.

    Example:
        >>> cross_encoder_pairs(["A dog."], ["A cat."], ["the animal"], separator="[SEP]")
        [['A dog.[SEP]A cat.', 'the animal']]
    """
    _check_lengths(sentences1=sentences1, sentences2=sentences2, conditions=conditions)
    joined = [f"{one}{separator}{two}" for one, two in zip(sentences1, sentences2, strict=True)]
    return conditional_sentences(joined, conditions, order=order)


def _check_lengths(**columns: Sequence[str]) -> None:
    """Refuses columns of different lengths, or a single text in the place of a column."""
    for name, column in columns.items():
        if isinstance(column, str):
            raise InputError(f"{name} must be a list of texts. Got one text, {column!r}, instead.")
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise InputError(f"Every row needs one text of each kind. Got {lengths} instead.")
