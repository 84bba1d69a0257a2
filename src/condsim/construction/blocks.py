"""Rows taken in blocks, so that any number of them fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from condsim.construction.vector_cache import Progress

__all__ = ["BLOCK", "counted", "in_blocks"]

T = TypeVar("T")

BLOCK = 4096
"""Rows of a block."""


def in_blocks(rows: Iterable[T]) -> Iterator[list[T]]:
    """Cuts rows into lists.

    Args:
        rows: The rows.

    Yields:
        Lists of `BLOCK` rows; the last may be shorter.
    """
    remaining = iter(rows)
    while block := list(islice(remaining, BLOCK)):
        yield block


def counted(rows: Iterable[T], total: int, progress: Progress) -> Iterator[T]:
    """Tells how many rows have come through.

    Args:
        rows: The rows.
        total: Their number.
        progress: Told of the stage ``rows``, the rows done and their number, once a block.

    Yields:
        The rows.
    """
    for number, row in enumerate(rows, start=1):
        yield row
        if number % BLOCK == 0 or number == total:
            progress("rows", number, total)
