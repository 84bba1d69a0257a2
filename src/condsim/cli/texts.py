"""Files of texts as people have them: blank cells, and columns that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from condsim.cli.options import check_column
from condsim.cli.process import print_note
from condsim.data.dialect import FileFormat
from condsim.data.files import Batch, check_file, read_batches
from condsim.errors import InputError
from condsim.types import BoolArray

_MAX_LISTED_ROWS = 3


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

    def report(self, consequence: str) -> None:
        """Print a line on the skipped rows, if there are any."""
        if not self.count:
            return
        numbers = ", ".join(map(str, self._first))
        more = ", ..." if self.count > len(self._first) else ""
        rows = "1 row has" if self.count == 1 else f"{self.count:,} rows have"
        print_note(
            f"{rows} no text and thus {consequence} (row {numbers}{more}); --strict stops there."
        )


class TextFile:
    """Texts of a file that is read several times; all its rows are checked first.

    Attributes:
        blank: The rows without text.
        present: Which rows have a text, ``(rows,)``.
    """

    def __init__(
        self, path: Path, column: str, file_format: FileFormat, *, tables: bool, strict: bool
    ) -> None:
        """Read all rows once; with ``tables``, reject what a table cannot hold."""
        check_file(path)
        check_column(path, column, file_format)
        self.path, self.column, self.file_format = path, column.strip(), file_format
        self.blank = BlankRows(strict=strict)
        masks = []
        for batch in self._read():
            if tables:
                batch.check_flat()
            masks.append(self.blank.present(batch, [self.column]))
            batch.take(np.flatnonzero(masks[-1])).texts(self.column)
        self.present: BoolArray = np.concatenate(masks)

    def _read(self, *other_columns: str) -> Iterator[Batch]:
        columns = tuple(dict.fromkeys((self.column, *other_columns)))
        return read_batches(self.path, columns=columns, file_format=self.file_format)

    def __iter__(self) -> Iterator[str]:
        """Yield the texts."""
        for batch, rows in self.batches():
            yield from batch.take(np.flatnonzero(self.present[rows])).texts(self.column)

    def batches(self, *other_columns: str) -> Iterator[tuple[Batch, slice]]:
        """Yield batches of all rows, and their slice of the rows of the file."""
        start = 0
        for batch in self._read(*other_columns):
            rows = slice(start, start + len(batch))
            if rows.stop > len(self.present):
                raise InputError(f"{self.path}: changed while it was read. Start again.")
            yield batch, rows
            start = rows.stop
