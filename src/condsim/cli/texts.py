"""Files of texts as people have them: blank cells, and columns that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from condsim.cli.options import check_column
from condsim.data.files import Batch, BlankRows, check_file, read_batches
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.types import BoolArray


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
            rows, _ = self.blank.texts(batch, [self.column])
            masks.append(np.isin(np.arange(len(batch)), rows))
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
