"""Rows of a data file that are read, worked on and written together, and rows without text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from condsim.data.row import Row, unique_names
from condsim.errors import InputError
from condsim.types import IntArray

Item = TypeVar("Item")

ROWS_PER_BATCH = 4096
"""Rows read, worked on and written at once, which bounds the memory."""

_MAX_LISTED_ROWS = 3


def in_blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut items into lists."""
    remaining = iter(items)
    while block := list(islice(remaining, size)):
        yield block


class Batch:
    """Rows that are read together, and the columns that a command adds to them, by name.

    The rows of JSON lines are ``ragged``: they may differ in their columns.
    """

    def __init__(self, rows: Sequence[Row], *, ragged: bool = False) -> None:
        self.rows = rows
        self.ragged = ragged
        self.added: dict[str, Sequence[object] | NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __setitem__(self, name: str, values: Sequence[object] | NDArray[Any]) -> None:
        """Add a column; a column of the file that has its name is written as ``name.1``."""
        self.added[name] = values

    def texts(self, column: str) -> list[str]:
        """Return a column of texts, each checked not to be empty; see `Row.text`."""
        return [row.text(column) for row in self.rows]

    def take(self, indices: Sequence[int] | NDArray[np.integer[Any]]) -> Batch:
        """Return some rows, by their indices in the batch, without added columns."""
        return Batch([self.rows[index] for index in indices], ragged=self.ragged)

    def check_flat(self) -> None:
        """Reject lists and objects, which a table cannot hold, before a long computation."""
        for row in self.full_rows:
            for name, value in row.record.items():
                if isinstance(value, list | dict):
                    raise InputError(
                        f"{row.location(name)}: a list or an object cannot be written as CSV or "
                        "TSV. Give an --output that ends in .jsonl, or remove the column."
                    )

    def records(self) -> Iterator[dict[str, object]]:
        """Yield each row as it is written: the columns of the file, then the added ones."""
        columns = {name: _plain_values(values) for name, values in self.added.items()}
        new_names: dict[tuple[str, ...], list[str]] = {}
        for index, row in enumerate(self.full_rows):
            names = tuple(row.record)
            if names not in new_names:
                new_names[names] = unique_names([*columns, *names])[len(columns) :]
            record = dict(zip(new_names[names], row.record.values(), strict=True))
            yield record | {name: values[index] for name, values in columns.items()}

    @cached_property
    def full_rows(self) -> Sequence[Row]:
        """The rows with their records."""
        return self.rows


def _plain_values(values: Sequence[object] | NDArray[Any]) -> Sequence[object]:
    if not isinstance(values, np.ndarray):
        return values
    # The text of a float32 is the shortest one that reads back as the same number; NaN is empty.
    if values.dtype == np.float32:
        return [None if np.isnan(value) else float(str(value)) for value in values]
    return cast(list[object], values.tolist())


class BlankRows:
    """Rows that lack a text or the condition; they are skipped and counted, or rejected.

    With ``strict`` they are rejected.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        # By what they lack: their number and the first of them.
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[int]] = defaultdict(list)

    def texts(
        self, batch: Batch, columns: Sequence[str], *, condition: str | None = None
    ) -> tuple[IntArray, list[list[str]]]:
        """Return the indices of the rows with a text in each column, ``(m,)``, and these texts.

        The texts of the column ``condition`` need more than punctuation.
        """
        rows: list[int] = []
        texts: list[list[str]] = [[] for _ in columns]
        for index, row in self.present(batch.rows, columns, condition=condition):
            rows.append(index)
            for name, column in zip(columns, texts, strict=True):
                column.append(row.text(name, is_condition=name == condition))
        return np.array(rows, np.int64), texts

    def present(
        self, rows: Iterable[Row], columns: Sequence[str], *, condition: str | None = None
    ) -> Iterator[tuple[int, Row]]:
        """Yield the rows that have a text in each of the columns, and their indices from 0."""
        texts = [name for name in columns if name != condition]
        indexed_rows = enumerate(rows)
        for index, row in indexed_rows:
            if not _is_blank(row, columns):
                yield index, row
                continue
            if self.strict:
                raise _blank_error(row, (later for _, later in indexed_rows), columns)
            self.count += 1
            lacking = "text" if _is_blank(row, texts) else "condition"
            self._counts[lacking] += 1
            if len(self._first[lacking]) < _MAX_LISTED_ROWS:
                self._first[lacking].append(row.number)

    def note(self, consequence: str) -> str:
        """Return a line on the skipped rows; empty if there are none."""
        parts = []
        for lacking, count in self._counts.items():
            numbers = ", ".join(map(str, self._first[lacking]))
            more = ", ..." if count > len(self._first[lacking]) else ""
            rows = "1 row has" if count == 1 else f"{count:,} rows have"
            parts.append(f"{rows} no {lacking} and thus {consequence} (row {numbers}{more})")
        return f"{'; '.join(parts)}; --strict stops there." if parts else ""


def _is_blank(row: Row, columns: Sequence[str]) -> bool:
    cells = [row.cells[name] for name in columns]
    return None in cells or "" in cells


def _blank_error(row: Row, later_rows: Iterable[Row], columns: Sequence[str]) -> InputError:
    """Name a row that lacks a text, and the next ones that do."""
    column = next(name for name in columns if row.cells[name] in (None, ""))
    blank_rows = (later for later in later_rows if _is_blank(later, columns))
    numbers = [str(blank.number) for blank in islice(blank_rows, _MAX_LISTED_ROWS)]
    listed = ", ".join(numbers[: _MAX_LISTED_ROWS - 1])
    more = ", ..." if len(numbers) >= _MAX_LISTED_ROWS else ""
    note = f" Also blank: row {listed}{more}." if numbers else ""
    return InputError(f"{row.location(column)}: must not be empty.{note}")
