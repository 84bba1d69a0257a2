"""Files of text pairs as people have them: any column names, conditions given once, blank cells."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.data.decoding import PeekedStream
from condsim.data.dialect import DETECTED, FileFormat
from condsim.data.files import Batch, column_names, read_batches
from condsim.data.formats import STANDARD_INPUT
from condsim.data.row import join_names
from condsim.errors import InputError
from condsim.types import BoolArray

_MAX_LISTED_ROWS = 3


class PairColumns(NamedTuple):
    """Columns of a file of pairs.

    Attributes:
        condition: Column of the conditions; None if they are not in the file.
        conditions: Conditions for every row; empty if the file has a column of them, or if pairs
            are compared as a whole.
    """

    text1: str
    text2: str
    condition: str | None
    conditions: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        texts = (self.text1, self.text2)
        return texts if self.condition is None else (*texts, self.condition)

    @property
    def is_plain(self) -> bool:
        """True if pairs are compared without a condition."""
        return self.condition is None and not self.conditions


def pair_columns(
    names: Sequence[str],
    file: Path,
    *,
    text1: str,
    text2: str,
    condition_column: str,
    conditions: Sequence[str] | None,
) -> PairColumns:
    """Choose the columns of a file by the options of a command.

    Raises:
        InputError: If a column is missing, or a condition is given twice.
    """
    text1, text2, condition_column = text1.strip(), text2.strip(), condition_column.strip()
    options = {text1: "--text1", text2: "--text2"}
    if conditions is None and condition_column != "condition":
        options[condition_column] = "--condition-column"
    missing = [name for name in options if name not in names]
    if names and missing:
        column = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{file}: no {column} {' or '.join(map(repr, missing))}; found {join_names(names)}."
            f"{_header_hint(names)} Name yours with {' and '.join(options[n] for n in missing)}."
        )
    if conditions:
        if len(set(conditions)) < len(conditions):
            raise InputError("--condition: give each condition once.")
        return PairColumns(text1, text2, None, tuple(conditions))
    has_conditions = condition_column in names
    return PairColumns(text1, text2, condition_column if has_conditions else None)


def _header_hint(names: Sequence[str]) -> str:
    """Say that a first line looks like a row of texts, if it does."""
    longest = max(names, key=len)
    if len(longest.split()) > 5 or longest.endswith((".", "!", "?")):
        return " The first line looks like a row; the file needs a header line."
    return ""


def open_pairs(
    file: Path,
    *,
    text1: str,
    text2: str,
    condition_column: str,
    conditions: Sequence[str] | None,
    size: int,
    file_format: FileFormat = DETECTED,
) -> tuple[PairColumns, Iterator[Batch]]:
    """Open a file of pairs, or standard input for ``-``; return its columns and batches."""
    source = standard_input(file_format) if str(file) == "-" else file
    names = column_names(source, file_format)
    file = file if isinstance(source, Path) else source.path
    columns = pair_columns(
        names,
        file,
        text1=text1,
        text2=text2,
        condition_column=condition_column,
        conditions=conditions,
    )
    if columns.is_plain and not names:
        # The names cannot be read ahead; reading the rows reports why.
        columns = PairColumns(text1, text2, condition_column)
    return columns, read_batches(source, columns=columns.names, size=size, file_format=file_format)


def standard_input(file_format: FileFormat = DETECTED) -> PeekedStream:
    """Open standard input and read its first lines ahead."""
    if sys.stdin is None:
        raise InputError("Standard input is closed; give --file the name of a file.")
    return PeekedStream(STANDARD_INPUT, sys.stdin.buffer, file_format)


class BlankRows:
    """Rows that lack a text; they are skipped and counted, or rejected."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.count = 0
        self._first: list[int] = []

    def present(self, batch: Batch, columns: Sequence[str]) -> BoolArray:
        """Return which rows of a batch have a text in each column, ``(n,)``."""
        present = np.ones(len(batch), np.bool_)
        if self.strict:
            return present
        for index, row in enumerate(batch.rows):
            cells = [row.cells[name] for name in columns]
            if any(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells):
                present[index] = False
                self.count += 1
                if len(self._first) < _MAX_LISTED_ROWS:
                    self._first.append(row.number)
        return present

    def note(self, consequence: str) -> str:
        """Return a line on the skipped rows; empty if there are none."""
        if not self.count:
            return ""
        numbers = ", ".join(map(str, self._first))
        more = ", ..." if self.count > len(self._first) else ""
        rows = "1 row has" if self.count == 1 else f"{self.count:,} rows have"
        return f"{rows} no text and thus {consequence} (row {numbers}{more}); --strict stops there."
