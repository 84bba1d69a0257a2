"""Data files in and out: CSV, TSV, JSON lines and Parquet, streamed.

Every command reads and writes rows in the same way::

    with open_writer(output) as writer:
        for batch in read_batches(path, columns=("sentence1", "sentence2", "condition")):
            batch["score"] = scorer.score(batch.texts("sentence1"), ...)
            writer.write(batch)

`BlankRows` gives the rows that have a text, or their texts, and counts the others.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar, cast

import numpy as np

from condsim.data.formats import (
    EXCEL_SUFFIX,
    JSON_SUFFIXES,
    STANDARD_INPUT,
    ColumnSelection,
    arrow_records,
    arrow_rows,
    parquet_tables,
    stream_columns,
    stream_rows,
    stream_suffix,
)
from condsim.data.row import Record, Row, unique_names
from condsim.data.text import DETECTED, FileFormat, PeekedStream, file_lines, open_bytes
from condsim.errors import InputError, require
from condsim.io import finite_values, replacing
from condsim.paths import check_suffix, suffix_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from condsim.types import IntArray

Item = TypeVar("Item")

ROWS_PER_BATCH = 4096
"""Rows read, worked on and written at once, which bounds the memory."""

# A tab or a line end, as TSV cannot hold it in a cell.
_BREAK = re.compile("\r\n|[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_TABLE_SUFFIXES = (".csv", ".tsv")
_TEXT_SUFFIXES = (*_TABLE_SUFFIXES, *JSON_SUFFIXES)
_READ_SUFFIXES = (*_TEXT_SUFFIXES, EXCEL_SUFFIX, ".parquet")
_STANDARD_INPUT_HINT = "A command reads standard input where the file is -."
_MAX_LISTED_ROWS = 3
_PARQUET_ROWS = 1024


# Reading


def read_batches(
    source: Path | str | BinaryIO | PeekedStream,
    *,
    columns: Sequence[str],
    size: int = ROWS_PER_BATCH,
    file_format: FileFormat = DETECTED,
) -> Iterator[Batch]:
    """Stream a data file in batches of rows that can be written again with all their columns.

    An open binary stream such as standard input is CSV or TSV, or JSON lines if its first character
    is ``{``. See `iter_rows` for the rest.
    """
    selection = ColumnSelection(tuple(columns), whole_record=True)
    if isinstance(source, Path | str):
        path, suffix = _checked_path(source)
        if suffix == ".parquet":
            return never_empty(path, _parquet_batches(path, selection, size))
        rows = _file_rows(path, suffix, selection, file_format)
    else:
        if not isinstance(source, PeekedStream):
            source = PeekedStream(STANDARD_INPUT, source, file_format)
        path, suffix = source.path, stream_suffix(source)
        rows = stream_rows(source, suffix, selection)
    blocks = in_blocks(never_empty(path, rows), size)
    return (Batch(block, ragged=suffix in JSON_SUFFIXES) for block in blocks)


def in_blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut items into lists."""
    remaining = iter(items)
    while block := list(islice(remaining, size)):
        yield block


def _parquet_batches(path: Path, selection: ColumnSelection, size: int) -> Iterator[Batch]:
    # The records stay in the Arrow table, which keeps their types.
    cells_only = selection._replace(whole_record=False)
    for number, table in parquet_tables(path, selection, size):
        yield Batch(list(arrow_rows(path, number, table, cells_only)), table=table)


def iter_rows(
    path: Path | str,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    whole_record: bool = False,
    txt_as_tsv: bool = False,
    file_format: FileFormat = DETECTED,
) -> Iterator[Row]:
    """Stream the rows of a data file in bounded memory.

    The call reports a wrong path or suffix, the iteration all else.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl`` or ``.ndjson`` file, perhaps gzipped; or a
            ``.parquet`` or ``.xlsx`` file. The separator, the quote and the encoding of a table
            are detected from its first lines, and logged if they are not those of its suffix.
        columns: Columns that the file must have; of JSON lines, one of the first rows. A row of
            JSON lines that lacks a column has None there.
        optional: Columns that are read if present, and are None otherwise.
        whole_record: Whether to keep all columns of the file, as `Row.record`.
        txt_as_tsv: Whether to read ``.txt`` as ``.tsv``.
        file_format: What is known of a text table, instead of what its first lines tell.
    """
    path, suffix = _checked_path(path, txt_as_tsv=txt_as_tsv)
    selection = ColumnSelection(tuple(columns), tuple(optional), whole_record)
    return never_empty(path, _file_rows(path, suffix, selection, file_format))


def _file_rows(
    path: Path, suffix: str, selection: ColumnSelection, file_format: FileFormat
) -> Iterator[Row]:
    if suffix == ".parquet":
        for number, table in parquet_tables(path, selection, _PARQUET_ROWS):
            yield from arrow_rows(path, number, table, selection)
        return
    with open_bytes(path) as source:
        yield from stream_rows(PeekedStream(path, source, file_format), suffix, selection)


def never_empty(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    """Pass rows or batches on; reject a file without any."""
    first = next(items, None)
    if first is None:
        raise InputError(f"{path}: has no rows, only a header or blank lines.")
    yield first
    yield from items


def column_names(
    source: Path | PeekedStream, file_format: FileFormat = DETECTED
) -> tuple[str, ...]:
    """Read the names of the columns, or the keys of the first JSON lines, without spaces around.

    A ``.txt`` is read as tab separated; rows can still be read from an open stream. There are no
    names if the file cannot be read: reading its rows gives the error.
    """
    try:
        if isinstance(source, PeekedStream):
            return stream_columns(source, stream_suffix(source))
        path, suffix = _checked_path(source, txt_as_tsv=True)
        # A pipe can be read only once.
        if not path.is_file():
            return ()
        if suffix == ".parquet":
            schema = require("pyarrow.parquet", extra="parquet").read_schema(path)
            return tuple(map(str.strip, schema.names))
        with open_bytes(path) as stream:
            return stream_columns(PeekedStream(path, stream, file_format), suffix)
    except (InputError, OSError, ValueError):
        return ()


class Batch:
    """Rows that are read together, and the columns that a command adds to them, by name.

    The rows of JSON lines are ``ragged``: they may differ in their columns.
    """

    def __init__(
        self, rows: Sequence[Row], *, ragged: bool = False, table: pa.RecordBatch | None = None
    ) -> None:
        # Rows of Parquet have an Arrow table in place of their records.
        self.rows = rows
        self.ragged = ragged
        self.added: dict[str, Sequence[object] | NDArray[Any]] = {}
        self._table = table

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
        table = None if self._table is None else self._table.take(_arrow().array(indices))
        return Batch([self.rows[index] for index in indices], ragged=self.ragged, table=table)

    def check_flat(self) -> None:
        """Reject lists and objects, which a table cannot hold, before a long computation."""
        for row in self._full_rows:
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
        for index, row in enumerate(self._full_rows):
            names = tuple(row.record)
            if names not in new_names:
                new_names[names] = unique_names([*columns, *names])[len(columns) :]
            record = dict(zip(new_names[names], row.record.values(), strict=True))
            yield record | {name: values[index] for name, values in columns.items()}

    def to_arrow(self) -> pa.Table | None:
        """Return the rows of a Parquet file, with their types, and the added columns."""
        if self._table is None:
            return None
        table = _arrow().Table.from_batches([self._table])
        names = unique_names([*self.added, *table.column_names])
        table = table.rename_columns(names[len(self.added) :])
        for name, values in self.added.items():
            table = table.append_column(name, _arrow().array(values, from_pandas=True))
        return table

    @cached_property
    def _full_rows(self) -> Sequence[Row]:
        if self._table is None or not self.rows:
            return self.rows
        records = arrow_records(self.rows[0].path, self._table)
        return [row._replace(record=record) for row, record in zip(self.rows, records, strict=True)]


def _plain_values(values: Sequence[object] | NDArray[Any]) -> Sequence[object]:
    if not isinstance(values, np.ndarray):
        return values
    # The text of a float32 is the shortest one that reads back as the same number; NaN is empty.
    if values.dtype == np.float32:
        return [None if np.isnan(value) else float(str(value)) for value in values]
    return cast(list[object], values.tolist())


def _arrow() -> ModuleType:
    return require("pyarrow", extra="parquet")


class BlankRows:
    """Rows that lack a text; they are skipped and counted, or rejected if ``strict``."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self._first: list[int] = []

    def texts(
        self, batch: Batch, columns: Sequence[str], *, condition: str | None = None
    ) -> tuple[IntArray, list[list[str]]]:
        """Return the indices of the rows with a text in each column, ``(m,)``, and these texts.

        The texts of the column ``condition`` need more than punctuation.
        """
        rows: list[int] = []
        texts: list[list[str]] = [[] for _ in columns]
        for index, row in self.present(batch.rows, columns):
            rows.append(index)
            for name, column in zip(columns, texts, strict=True):
                column.append(row.text(name, is_condition=name == condition))
        return np.array(rows, np.int64), texts

    def present(self, rows: Iterable[Row], columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
        """Yield the rows that have a text in each of the columns, and their indices from 0."""
        indexed_rows = enumerate(rows)
        for index, row in indexed_rows:
            if not _is_blank(row, columns):
                yield index, row
                continue
            if self.strict:
                raise _blank_error(row, (later for _, later in indexed_rows), columns)
            self.count += 1
            if len(self._first) < _MAX_LISTED_ROWS:
                self._first.append(row.number)

    def note(self, consequence: str) -> str:
        """Return a line on the skipped rows; empty if there are none."""
        if not self.count:
            return ""
        numbers = ", ".join(map(str, self._first))
        more = ", ..." if self.count > len(self._first) else ""
        rows = "1 row has" if self.count == 1 else f"{self.count:,} rows have"
        return f"{rows} no text and thus {consequence} (row {numbers}{more}); --strict stops there."


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
    note = f" Also without text: row {listed}{more}." if numbers else ""
    return InputError(f"{row.location(column)}: must not be empty.{note}")


# Paths


def text_lines(path: Path) -> Iterator[str]:
    """Stream the lines of a text file, perhaps gzipped, with their ends (LF or CRLF)."""
    check_file(path)
    return file_lines(path)


def check_file(path: Path) -> None:
    """Reject a path that is not a file or is empty, and a pipe, which can be read only once."""
    if not stat.S_ISREG(_status(path).st_mode):
        raise InputError(f"{path}: is not a regular file, and is read twice. Save it as a file.")


def _checked_path(path: Path | str, *, txt_as_tsv: bool = False) -> tuple[Path, str]:
    """Check that a file of rows can be read; return its path and its format as a suffix."""
    path = Path(path)
    status = _status(path)
    suffix = suffix_of(path)
    suffix = ".tsv" if txt_as_tsv and suffix == ".txt" else suffix
    if suffix not in _READ_SUFFIXES:
        pipe = "" if stat.S_ISREG(status.st_mode) else f" {_STANDARD_INPUT_HINT}"
        raise InputError(
            f"{path}: the suffix decides the format and must be one of "
            f"{', '.join(_READ_SUFFIXES)}, got {suffix!r}.{pipe}"
        )
    return path, suffix


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        fault = f"cannot be read ({getattr(error, 'strerror', None) or error})."
        if isinstance(error, FileNotFoundError):
            fault = "no such file." + (f" {_STANDARD_INPUT_HINT}" if str(path) == "-" else "")
        raise InputError(f"{path}: {fault}") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a folder, not a file.")
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise InputError(f"{path}: is empty (0 bytes); at least one row is needed.")
    return status


# Writing


def is_table(output: Path) -> bool:
    """Detect whether a text file to write is a table, in which all rows have the same columns."""
    return check_suffix(output, _TEXT_SUFFIXES) in _TABLE_SUFFIXES


@contextmanager
def open_writer(output: Path | TextIO) -> Iterator[RecordWriter]:
    """Open a file to write rows to; it appears under its name only when it is complete.

    Args:
        output: A ``.csv``, ``.tsv``, ``.jsonl`` or ``.ndjson`` file; ``.parquet`` if the rows come
            from Parquet; or an open text stream such as standard output, written as TSV.
    """
    if not isinstance(output, Path):
        writer = RecordWriter(output, ".tsv")
        yield writer
        writer.finish()
        return
    suffix = check_suffix(output, (*_TEXT_SUFFIXES, ".parquet"))
    with replacing(output) as partial:
        if suffix == ".parquet":
            writer = _ParquetWriter(partial, output)
            try:
                yield writer
            finally:
                writer.finish()
            return
        with partial.open("w", encoding="utf-8", newline="") as stream:
            writer = RecordWriter(stream, suffix)
            yield writer
            writer.finish()


def write_records(path: Path, records: Iterable[Record], *, columns: Sequence[str] = ()) -> int:
    """Write records to a text file, in a table all with the same keys; return their number.

    Args:
        columns: Header of a table without records.
    """
    with open_writer(path) as writer:
        writer.write(records)
        if columns and not writer.rows:
            writer.write_header(columns)
    return writer.rows


class RecordWriter:
    """Writer of batches of rows; `open_writer` makes one."""

    def __init__(self, stream: TextIO, suffix: str) -> None:
        # Number of rows written so far.
        self.rows = 0
        self._stream = stream
        self._suffix = suffix
        self._csv = csv.writer(stream, lineterminator="\n")
        # Rows that wait for the columns of later ones.
        self._spool: TextIO | None = None
        self._last_columns: tuple[str, ...] = ()

    def write(self, records: Batch | Iterable[Record]) -> None:
        """Write a batch, or plain records, which have the same keys if the file is a table."""
        if isinstance(records, Batch):
            if self._suffix in _TABLE_SUFFIXES:
                records.check_flat()
                if records.ragged:
                    self._spool_records(records)
                    return
            records = records.records()
        for record in records:
            self._write_record(record)

    def write_header(self, columns: Iterable[str]) -> None:
        """Write the names of the columns of a table without rows."""
        if self._suffix in _TABLE_SUFFIXES:
            self._write_cells(columns)

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
            for line in spool:
                record = json.loads(line)
                self._write_record({name: record.get(name) for name in order})

    def _spool_records(self, batch: Batch) -> None:
        """Store rows that may differ in their columns, since a table has the columns of all rows.

        The columns that the command added come last.
        """
        if self._spool is None:
            self._spool = cast(TextIO, tempfile.TemporaryFile("w+", encoding="utf-8"))
            self._last_columns = tuple(batch.added)
        for record in batch.records():
            self._spool.write(json.dumps(record) + "\n")

    def _write_record(self, record: Record) -> None:
        if self._suffix in JSON_SUFFIXES:
            self._stream.write(_json_text(record) + "\n")
        else:
            if not self.rows:
                self._write_cells(record)
            self._write_cells(map(_cell_text, record.values()))
        self.rows += 1

    def _write_cells(self, cells: Iterable[str]) -> None:
        if self._suffix == ".csv":
            self._csv.writerow(cells)
        else:
            # TSV has no quotes: a tab or a line end in a text becomes a space.
            self._stream.write("\t".join(_BREAK.sub(" ", cell) for cell in cells) + "\n")


def _json_text(record: Record) -> str:
    """Format a record as JSON, which has no infinity and no NaN: they become null."""
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(finite_values(record), ensure_ascii=False, default=str)
    except RecursionError:
        raise InputError("A value of a row is nested too deeply to be written.") from None


def _cell_text(value: object) -> str:
    """Format a value for CSV and TSV."""
    # Pandas writes NaN for an empty cell.
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _ParquetWriter(RecordWriter):
    """Writer of batches that were read from Parquet; the types of their columns stay."""

    def __init__(self, partial: Path, output: Path) -> None:
        self.rows = 0
        self._partial = partial
        self._output = output
        self._writer: Any = None

    def write(self, records: Batch | Iterable[Record]) -> None:
        table = records.to_arrow() if isinstance(records, Batch) else None
        if table is None:
            raise InputError(
                f"{self._output}: Parquet is written only from a Parquet file; give a name that "
                f"ends in {', '.join(_TEXT_SUFFIXES)}."
            )
        if self._writer is None:
            parquet = require("pyarrow.parquet", extra="parquet")
            self._writer = parquet.ParquetWriter(self._partial, table.schema)
        self._writer.write_table(table)
        self.rows += len(table)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
