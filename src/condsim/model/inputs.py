"""Inputs of a model: sentences joined with conditions, each once, in batches. Needs no extra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, get_args

import numpy as np

from condsim.errors import InputError, unknown_name
from condsim.types import IntArray

Order = Literal["condition-first", "sentence-first", "bare-condition-first"]
"""Order of condition and sentence in the pair that a tokenizer joins. The last one reads a
condition without the marks at its end: "the place", "the place." and "the place?" are one."""

_MARKS = " \t\n.?!:;,…"

Layout = Literal["released", "pair"]
"""Layout of a cross-encoder's texts: one text, each but the last followed by a space and one
separator, or a pair, joined and typed as the tokenizer joins pairs."""

Inputs = Literal["both", "condition", "sentences"]
"""The part of a row that a cross-encoder reads."""

# Blocks of rows bound the memory; a row with more characters counts as several rows.
ROWS_PER_BLOCK = 4096
CHARACTERS_PER_ROW = 512


def check_order(order: str) -> None:
    """Refuse an unknown order."""
    if order not in get_args(Order):
        raise unknown_name("order", order, get_args(Order))


def conditional_sentences(
    sentences: Sequence[str], conditions: Sequence[str], *, order: Order
) -> list[list[str]]:
    """Pair each sentence with its condition, the input of a bi- or tri-encoder.

    Args:
        sentences: Sentences, length n.
        conditions: The condition of each sentence, length n.
        order: Which of the two comes first, and whether conditions are bare.

    Example:
        >>> conditional_sentences(["A dog runs."], ["the animal"], order="condition-first")
        [['the animal', 'A dog runs.']]
    """
    check_order(order)
    conditions = as_read(conditions, order=order)
    columns = (sentences, conditions) if order == "sentence-first" else (conditions, sentences)
    return [list(pair) for pair in zip(*columns, strict=True)]


def as_read(conditions: Sequence[str], *, order: Order) -> list[str]:
    """Strip the marks from conditions if a model of that order reads them bare."""
    if order != "bare-condition-first":
        return list(conditions)
    return [condition.rstrip(_MARKS) or condition for condition in conditions]


def card_texts(order: Order) -> tuple[str, str]:
    """Name the two texts of a conditional sentence for a model card, in their order."""
    if order == "sentence-first":
        return "sentence", "condition"
    if order == "bare-condition-first":
        return "condition, without the marks at its end", "sentence"
    return "condition", "sentence"


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
    """Join two sentences and a condition, the input of a cross-encoder.

    The separators are written into the text, where the tokenizer reads them as its special token.
    The paper leaves them open; ``released`` is the form in the code of C-STS (READING.md).

    Args:
        sentences1: First sentences, length n.
        sentences2: Second sentences, length n.
        conditions: Conditions, length n, or None.
        separator: The result of ``condsim.model.builders.separator_of(tokenizer, layout)``.
        order: Whether the sentences or the condition come first.
        layout: One text, or a pair of texts of which the sentences are one.
        inputs: The part of a row to read (C-STS Table 10); the separators of the rest go with it.

    Example:
        >>> cross_encoder_inputs(["A dog."], ["A cat."], ["the animal"], separator=" [SEP] ")
        ['A dog. [SEP] A cat. [SEP] the animal']
    """
    if inputs == "condition":
        if conditions is None:
            raise InputError("This cross-encoder reads only conditions, and the rows have none.")
        return [*as_read(conditions, order=order)]
    pairs = [list(pair) for pair in zip(sentences1, sentences2, strict=True)]
    if conditions is not None and inputs == "both":
        joined = [separator.join(pair) for pair in pairs]
        pairs = conditional_sentences(joined, conditions, order=order)
    return [separator.join(pair) if layout == "released" else pair for pair in pairs]


def row_blocks(columns: Sequence[Sequence[str]]) -> Iterator[slice]:
    """Cut rows of texts into blocks, which have fewer rows where texts are long."""
    start = size = row = 0
    for row, texts in enumerate(zip(*columns, strict=True), start=1):
        row_size = max(1, sum(map(len, texts)) // CHARACTERS_PER_ROW)
        size += row_size
        if size > ROWS_PER_BLOCK and row - 1 > start:
            yield slice(start, row - 1)
            start, size = row - 1, row_size
    if row:
        yield slice(start, row)


def deduplicate_inputs(
    columns: Sequence[Sequence[str]], conditions: Sequence[str] | None
) -> tuple[list[str], list[str] | None, IntArray]:
    """List each conditional sentence once, in an order that depends on the texts alone.

    So swapped columns are embedded in the same batches, and scores are symmetric to the last bit,
    although the contents of a batch affect the last bits of an embedding.

    Args:
        columns: Columns of sentences, each of length n.
        conditions: Their conditions, length n, or None.

    Returns:
        The distinct sentences (m), their conditions (m) or None, and the index of each text of the
        columns among them, ``(columns, n)``.
    """
    keys = conditions if conditions is not None else [""] * len(columns[0])
    texts = [list(zip(keys, column, strict=True)) for column in columns]
    index_of = {key: number for number, key in enumerate(sorted(set(chain(*texts))))}
    rows = [[index_of[key] for key in row] for row in texts]
    sentences = [sentence for _, sentence in index_of]
    index = np.array(rows, dtype=np.int64).reshape(len(columns), -1)
    return sentences, None if conditions is None else [key for key, _ in index_of], index


def token_batches(lengths: IntArray, *, tokens: int) -> Iterator[IntArray]:
    """Cut texts, sorted by length, into batches of at most ``tokens`` tokens.

    Args:
        lengths: Tokens of each text, (n,).
        tokens: Maximum number of tokens of a batch, padded to its longest text, 1 or more.

    Yields:
        Indices of the texts of one batch, shortest first; a text above the limit is alone.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= tokens:
            stop += 1
        yield order[start:stop]
        start = stop
