"""Writers of rows: CSV, TSV, Markdown, JSON lines and Parquet."""

from __future__ import annotations

import csv
import json
import math
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, TextIO, cast

from condsim.data.batch import Batch
from condsim.data.parquet import ArrowBatch
from condsim.data.row import Record
from condsim.errors import InputError, require
from condsim.io import finite_values

# A tab or a line end, as TSV cannot hold it in a cell.
_BREAK = re.compile("\r\n|[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


class RowWriter(ABC):
    """Writer of batches of rows.

    Attributes:
        flat: Whether all rows have the same columns and no cell is a list or an object.
        any_rows: Whether rows of any other format can be written.
        rows: Number of rows written so far.
    """

    flat: ClassVar[bool] = False
    any_rows: ClassVar[bool] = True

    def __init__(self) -> None:
        self.rows = 0

    @classmethod
    @abstractmethod
    def open(cls, partial: Path, output: Path) -> AbstractContextManager[RowWriter]:
        """Open the temporary file of an output, and finish it in the end."""

    @abstractmethod
    def write(self, records: Batch | Iterable[Record]) -> None:
        """Write a batch, or plain records, which have the same keys if the file is a table."""

    def write_header(self, columns: Iterable[str]) -> None:  # noqa: B027
        """Write the names of the columns of a table without rows."""

    def finish(self) -> None:  # noqa: B027
        """Write what waited until all rows were known."""


class _TextWriter(RowWriter):
    """Writer of a text file, one row after the other."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @classmethod
    @contextmanager
    def open(cls, partial: Path, output: Path) -> Iterator[RowWriter]:
        with partial.open("w", encoding="utf-8", newline="") as stream:
            writer = cls(stream)
            yield writer
            writer.finish()

    def write(self, records: Batch | Iterable[Record]) -> None:
        for record in records.records() if isinstance(records, Batch) else records:
            self.write_record(record)
            self.rows += 1

    @abstractmethod
    def write_record(self, record: Record) -> None:
        """Write one row."""


class _TableWriter(_TextWriter):
    """Writer of a table of texts."""

    flat = True

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # Rows that wait for the columns of later ones.
        self._spool: TextIO | None = None
        self._last_columns: tuple[str, ...] = ()

    @abstractmethod
    def write_cells(self, cells: Iterable[str]) -> None:
        """Write the cells of one row."""

    def write_header(self, columns: Iterable[str]) -> None:
        self.write_cells(columns)

    def write(self, records: Batch | Iterable[Record]) -> None:
        if isinstance(records, Batch):
            records.check_flat()
            if records.ragged:
                self._spool_records(records)
                return
        super().write(records)

    def write_record(self, record: Record) -> None:
        if not self.rows:
            self.write_header(record)
        self.write_cells(map(_cell_text, record.values()))

    def finish(self) -> None:
        """Write the rows that waited until the columns of all rows were known."""
        if self._spool is None:
            return
        with self._spool as spool:
            spool.seek(0)
            names = dict.fromkeys(chain.from_iterable(map(json.loads, spool)))
            order = [name for name in names if name not in self._last_columns]
            order += self._last_columns
            spool.seek(0)
            records = map(json.loads, spool)
            super().write({name: record.get(name) for name in order} for record in records)

    def _spool_records(self, batch: Batch) -> None:
        """Store rows that may differ in their columns; a table has the columns of all rows."""
        if self._spool is None:
            self._spool = cast(TextIO, tempfile.TemporaryFile("w+", encoding="utf-8"))
            self._last_columns = tuple(batch.added)
        for record in batch.records():
            self._spool.write(json.dumps(record) + "\n")


class CsvWriter(_TableWriter):
    """Writer of CSV."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._csv = csv.writer(stream, lineterminator="\n")

    def write_cells(self, cells: Iterable[str]) -> None:
        """Write a line, with quotes where they are needed."""
        self._csv.writerow(cells)


class TsvWriter(_TableWriter):
    """Writer of TSV, which has no quotes: a tab or a line end in a text becomes a space."""

    def write_cells(self, cells: Iterable[str]) -> None:
        """Write a line with tabs between the cells."""
        self._stream.write("\t".join(_BREAK.sub(" ", cell) for cell in cells) + "\n")


class MarkdownWriter(_TableWriter):
    """Writer of a pipe table; a line end in a text becomes a space."""

    def write_header(self, columns: Iterable[str]) -> None:
        """Write the names and the line below them."""
        names = list(columns)
        self.write_cells(names)
        self._stream.write("|---" * len(names) + "|\n")

    def write_cells(self, cells: Iterable[str]) -> None:
        """Write a line of the table."""
        self._stream.write(markdown_row(cells) + "\n")


def markdown_row(cells: Iterable[str]) -> str:
    """Lay out the cells of one row of a pipe table."""
    texts = (escape_markdown(cell) for cell in cells)
    return "".join(f"| {text} " if text else "| " for text in texts) + "|"


def escape_markdown(text: str) -> str:
    """Escape text that would break out of a Markdown table."""
    return _BREAK.sub(" ", text.replace("|", "\\|"))


class JsonWriter(_TextWriter):
    """Writer of JSON lines, which have no infinity and no NaN: they become null."""

    def write_record(self, record: Record) -> None:
        """Write a line of JSON."""
        try:
            text = json.dumps(record, ensure_ascii=False, allow_nan=False, default=str)
        except ValueError:
            text = json.dumps(finite_values(record), ensure_ascii=False, default=str)
        except RecursionError:
            raise InputError("A value of a row is nested too deeply to be written.") from None
        self._stream.write(text + "\n")


def _cell_text(value: object) -> str:
    """Format a value for a table."""
    # Pandas writes NaN for an empty cell.
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class ParquetWriter(RowWriter):
    """Writer of batches that were read from Parquet; the types of their columns stay."""

    any_rows = False

    def __init__(self, partial: Path, output: Path) -> None:
        super().__init__()
        self._partial = partial
        self._output = output
        self._writer: Any = None

    @classmethod
    @contextmanager
    def open(cls, partial: Path, output: Path) -> Iterator[RowWriter]:
        """Open the temporary file when the first batch tells the types of its columns."""
        writer = cls(partial, output)
        try:
            yield writer
        finally:
            writer.finish()

    def write(self, records: Batch | Iterable[Record]) -> None:
        """Write a batch that was read from Parquet."""
        if not isinstance(records, ArrowBatch):
            raise InputError(
                f"{self._output}: Parquet is written only from a Parquet file; give a name of "
                "another format, such as .csv or .jsonl."
            )
        table = records.to_arrow()
        if self._writer is None:
            parquet = require("pyarrow.parquet", extra="parquet")
            self._writer = parquet.ParquetWriter(self._partial, table.schema)
        self._writer.write_table(table)
        self.rows += len(table)

    def finish(self) -> None:
        """Write the footer of the file."""
        if self._writer is not None:
            self._writer.close()
