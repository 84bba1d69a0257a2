"""The formats of data files: text decoded line by line, and Parquet read with pyarrow."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from condsim.data.row import (
    Record,
    Row,
    check_columns,
    check_header,
    checked_cell,
    checked_value,
    location,
    short_repr,
    unique_names,
)
from condsim.errors import InputError, require

if TYPE_CHECKING:
    import pyarrow as pa

# A limit keeps a file without line ends out of memory.
MAX_LINE_BYTES = 16 * 1024 * 1024
_PARQUET_ROWS = 1024
STANDARD_INPUT = Path("standard input")
JSON_SUFFIXES = (".jsonl", ".ndjson")
_GZIP_MAGIC = b"\x1f\x8b"


class ColumnSelection(NamedTuple):
    """The columns to read: required ones, optional ones, and whether all of the file."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    whole_record: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The required and the optional columns."""
        return self.required + self.optional


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read its bytes; unpack a file whose name ends in ``.gz``."""
    try:
        if path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({error.strerror}).") from None


def file_lines(path: Path) -> Generator[str, None, None]:
    """Open a file and decode it line by line."""
    with open_bytes(path) as stream:
        yield from _decoded_lines(path, stream)


def stream_lines(stream: BinaryIO) -> tuple[str, Iterator[str]]:
    """Return the format of an open stream, as a suffix, and its lines."""
    lines = _decoded_lines(STANDARD_INPUT, stream)
    start: list[str] = []
    for line in lines:
        start.append(line)
        if line.strip():
            break
    is_json = bool(start) and start[-1].lstrip().startswith("{")
    return ".jsonl" if is_json else ".tsv", chain(start, lines)


def _decoded_lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Decode UTF-8 line by line, line ends included; drop a byte-order mark at the start."""
    offset = 0
    number = 0
    while raw := _next_line(path, stream, number):
        number += 1
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if number == 1 and raw.startswith(_GZIP_MAGIC):
                raise InputError(f"{path}: is packed by gzip; its name must end in .gz.") from None
            raise InputError(
                f"{location(path, line=number)}, byte {offset + error.start} of the file: not "
                f"valid UTF-8 (0x{raw[error.start]:02x}, {error.reason}). Convert the file, for "
                "example with 'iconv -f cp1252 -t utf-8'."
            ) from None
        if "\0" in text:
            raise InputError(
                f"{location(path, line=number)}, byte {offset + raw.index(0)} of the file: NUL "
                "byte. The file must be text in UTF-8, not binary or UTF-16."
            )
        offset += len(raw)
        yield text.removeprefix("\ufeff") if number == 1 else text


def _next_line(path: Path, stream: BinaryIO, number: int) -> bytes:
    """Read the line after ``number`` lines; empty at the end of the file."""
    try:
        raw = stream.readline(MAX_LINE_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}, after line {number}: not a complete gzip file ({error})."
        ) from None
    except OSError as error:
        raise InputError(f"{path}, after line {number}: cannot be read ({error}).") from error
    if len(raw) > MAX_LINE_BYTES:
        raise InputError(
            f"{location(path, line=number + 1)}: is longer than {MAX_LINE_BYTES >> 20} MiB; lines "
            "must end with LF or CRLF."
        )
    return raw


def csv_records(
    path: Path, lines: Iterator[str], *, strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Split comma separated lines as RFC 4180 says; yield line numbers and fields, header first.

    Unless ``strict``, a stray quote is accepted and a record of empty cells is a blank line.
    """
    reader = csv.reader(lines, strict=strict)
    row = 0
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            where = location(path, row=row, line=line) if row else f"{path}, header (line {line})"
            raise InputError(
                f"{where}: not valid CSV ({error}). Close each quoted cell, write a quote inside "
                'it twice (""), and end lines with LF or CRLF; a cell has at most 128 KiB.'
            ) from None
        if fields is None:
            return
        if fields and (strict or any(field.strip() for field in fields)):
            yield line, fields
            row += 1


def tsv_records(_path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Split tab separated lines, in which quotes have no meaning; see `csv_records`."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if text:
            yield number, text.split("\t")


Records = Callable[[Path, Iterator[str]], Iterator[tuple[int, list[str]]]]


def delimited_rows(
    split: Records, path: Path, lines: Iterator[str], selection: ColumnSelection
) -> Iterator[Row]:
    """Stream the rows of a file whose first record is a header."""
    records = split(path, lines)
    _, header = next(records, (1, []))
    if not header:
        return
    names = [name.strip() for name in header]
    check_header(path, names, selection.required, selection.optional)
    record_names = unique_names(names)
    positions = {name: names.index(name) for name in selection.names if name in names}
    absent = dict.fromkeys(name for name in selection.optional if name not in names)
    for number, (line, fields) in enumerate(records, start=1):
        if len(fields) != len(names):
            raise InputError(
                f"{location(path, row=number, line=line)}: must have {len(names)} fields as the "
                f"header has, got {len(fields)}. In CSV, quote a cell that contains a comma."
            )
        cells = {name: fields[position].strip() for name, position in positions.items()}
        row = Row(path, number, line, absent | cells)
        if selection.whole_record:
            stripped = [field.strip() for field in fields]
            row = row._replace(record=dict(zip(record_names, stripped, strict=True)))
        yield row


def _json_rows(path: Path, lines: Iterator[str], selection: ColumnSelection) -> Iterator[Row]:
    number = 0
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        number += 1
        where = location(path, row=number, line=line)
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = str(error)
            if isinstance(error, json.JSONDecodeError):
                reason = f"{error.msg} at character {error.pos + 1}"
            raise InputError(
                f"{where}: not valid JSON ({reason}). Each line must be one object, such as "
                '{"sentence1": "...", ...}.'
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"{where}: must be a JSON object, got {short_repr(record)}.")
        check_columns(where, list(record), selection.required)
        row = _typed_row(Row(path, number, line, {}), record, selection)
        if selection.whole_record:
            values = {name: _copied_value(row, name, value) for name, value in record.items()}
            row = row._replace(record=values)
        yield row


def _typed_row(row: Row, record: Record, selection: ColumnSelection) -> Row:
    """Fill in the cells of a format that has types."""
    for name in selection.names:
        row.cells[name] = checked_cell(row, name, record.get(name))
    return row


def _copied_value(row: Row, name: str, value: object) -> object:
    return row.cells[name] if name in row.cells else checked_value(row, name, value)


ROW_READERS: dict[str, Callable[[Path, Iterator[str], ColumnSelection], Iterator[Row]]] = {
    ".csv": partial(delimited_rows, csv_records),
    ".tsv": partial(delimited_rows, tsv_records),
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
}


def parquet_rows(path: Path, selection: ColumnSelection) -> Iterator[Row]:
    """Stream the rows of a Parquet file."""
    for first_number, table in parquet_tables(path, selection, _PARQUET_ROWS):
        yield from arrow_rows(path, first_number, table, selection)


def parquet_tables(
    path: Path, selection: ColumnSelection, size: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Stream a Parquet file; yield the number of the first row and the rows."""
    parquet = require("pyarrow.parquet", extra="parquet")
    number = 1
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            names = list(file.schema_arrow.names)
            check_header(path, names, selection.required, selection.optional)
            columns = [name for name in selection.names if name in names]
            for table in file.iter_batches(
                batch_size=size, columns=None if selection.whole_record else columns
            ):
                yield number, table
                number += len(table)
    except (require("pyarrow", extra="parquet").ArrowException, OSError) as error:
        raise InputError(
            f"{path}, after row {number - 1}: not a complete Parquet file "
            f"({str(error).splitlines()[0]})."
        ) from None


def arrow_rows(
    path: Path, first_number: int, table: pa.RecordBatch, selection: ColumnSelection
) -> Iterator[Row]:
    """Convert an Arrow table to rows with checked cells."""
    names = [name for name in selection.names if name in table.schema.names]
    columns = _python_columns(path, table.select(names))
    rows = []
    for index in range(len(table)):
        cells = {name: column[index] for name, column in zip(names, columns, strict=True)}
        rows.append(_typed_row(Row(path, first_number + index, None, {}), cells, selection))
    return with_records(rows, table) if selection.whole_record else iter(rows)


def with_records(rows: Sequence[Row], table: pa.RecordBatch) -> Iterator[Row]:
    """Add to each row all columns of the table."""
    if not rows:
        return
    names = unique_names(table.schema.names)
    columns = _python_columns(rows[0].path, table)
    for index, row in enumerate(rows):
        record = {
            name: _copied_value(row, name, column[index])
            for name, column in zip(names, columns, strict=True)
        }
        yield row._replace(record=record)


def _python_columns(path: Path, table: pa.RecordBatch) -> list[list[object]]:
    """Convert an Arrow table column by column; dates, times and decimals become text."""
    try:
        columns = [column.to_pylist() for column in table.columns]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: text is not valid UTF-8 ({error.reason}).") from None
    for column in columns:
        for index, value in enumerate(column):
            if type(value).__module__ in ("datetime", "decimal"):
                column[index] = str(value)
    return columns
