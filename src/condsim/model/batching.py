"""Batches of texts for a model: each distinct one once, of similar length, of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from condsim.types import IntArray

# Blocks of rows bound the memory; a row with more characters counts as several rows.
ROWS_PER_BLOCK = 4096
CHARACTERS_PER_ROW = 512


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
