"""How a sentence and its condition go into a model together. Core: needs no extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from condsim.errors import InputError, unknown_name

Order = Literal["condition-first", "sentence-first", "bare-condition-first"]
"""Which of condition and sentence comes first in the pair that a tokenizer joins. The last reads a
condition without the marks at its end: "the place", "the place." and "the place?" are one."""

_MARKS = " \t\n.?!:;,…"

Layout = Literal["released", "pair"]
"""How a cross-encoder reads its texts: as one, each but the last followed by a space and one
separator, or as a pair, joined and typed as the tokenizer joins pairs."""

Inputs = Literal["both", "condition", "sentences"]
"""What a cross-encoder is given of a row."""


def check_order(order: str) -> None:
    """Raises an InputError unless the order is a known one."""
    if order not in get_args(Order):
        raise unknown_name("order", order, get_args(Order))


def conditional_sentences(
    sentences: Sequence[str], conditions: Sequence[str], *, order: Order
) -> list[list[str]]:
    """Pairs each sentence with its condition, the input of a bi- or tri-encoder.

    Args:
        sentences: Sentences, length n.
        conditions: The condition of each sentence, length n.
        order: Which of the two comes first, and whether conditions are bare.

    Raises:
        InputError: If the lengths differ or the order is unknown.

    Example:
        >>> conditional_sentences(["A dog runs."], ["the animal"], order="condition-first")
        [['the animal', 'A dog runs.']]
    """
    check_order(order)
    _check_lengths(sentences=sentences, conditions=conditions)
    read = as_read(conditions, order=order)
    columns = (sentences, read) if order == "sentence-first" else (read, sentences)
    return [list(pair) for pair in zip(*columns, strict=True)]


def as_read(conditions: Sequence[str], *, order: Order) -> list[str]:
    """Gives conditions as a model of that order reads them."""
    bare = order == "bare-condition-first"
    return [one.rstrip(_MARKS) or one if bare else one for one in conditions]


def card_texts(order: Order) -> tuple[str, str]:
    """What a model card calls the two texts of a conditional sentence, in their order."""
    condition = "condition" + ", without the marks at its end" * (order == "bare-condition-first")
    return ("sentence", condition) if order == "sentence-first" else (condition, "sentence")


def cross_encoder_inputs(
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    conditions: Sequence[str] | None,
    *,
    separator: str,
    order: Order = "sentence-first",
    layout: Layout = "released",
    inputs: Inputs = "both",
) -> list[str | list[str]]:
    """Joins two sentences and a condition, the input of a cross-encoder.

    The separators are written into the text, where the tokenizer reads them as its special token.
    The paper leaves them open; ``released`` is what the code of C-STS does (READING.md).

    Args:
        sentences1: First sentences, length n.
        sentences2: Second sentences, length n.
        conditions: Conditions, length n, or None.
        separator: What ``condsim.model.builders.separator_of(tokenizer, layout)`` gives.
        order: Whether the sentences or the condition come first.
        layout: One text, or a pair of texts of which the sentences are one.
        inputs: What is left of a row (C-STS Table 10); the separators of the rest go with it.

    Raises:
        InputError: If the lengths differ, the order is unknown, or only conditions are to be read
            and there are none.

    Example:
        >>> cross_encoder_inputs(["A dog."], ["A cat."], ["the animal"], separator=" [SEP] ")
        ['A dog. [SEP] A cat. [SEP] the animal']
    """
    if inputs == "condition":
        if conditions is None:
            raise InputError("This cross-encoder reads conditions only. Got rows without any.")
        return [*as_read(conditions, order=order)]
    given = {} if conditions is None else {"conditions": conditions}
    _check_lengths(sentences1=sentences1, sentences2=sentences2, **given)
    pairs = [list(pair) for pair in zip(sentences1, sentences2, strict=True)]
    if conditions is not None and inputs == "both":
        joined = [separator.join(pair) for pair in pairs]
        pairs = conditional_sentences(joined, conditions, order=order)
    return [separator.join(pair) if layout == "released" else pair for pair in pairs]


def _check_lengths(**columns: Sequence[str]) -> None:
    """Refuses columns of different lengths, or a single text in the place of a column."""
    for name, column in columns.items():
        if isinstance(column, str):
            raise InputError(f"{name} must be a list of texts. Got one text, {column!r}, instead.")
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise InputError(f"Every row needs one text of each kind. Got {lengths} instead.")
