"""The formats of data files: CSV, TSV and JSON lines, Excel, and Parquet read with pyarrow."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from condsim.data.decoding import PeekedStream, open_bytes
from condsim.data.dialect import (
    CSV,
    DEFAULT_DIALECTS,
    DETECTED,
    TSV,
    Dialect,
    FileFormat,
    describe_dialect,
    detect_dialect,
    log_form,
    separator_line,
)
from condsim.data.excel import excel_records
from condsim.data.row import (
    Record,
    Row,
    check_columns,
    check_header,
    checked_cell,
    checked_value,
    location,
    match_columns,
    short_repr,
    unique_names,
)
from condsim.errors import InputError, require

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET_ROWS = 1024
# As the csv module has it: a text of a megabyte takes a model half a minute.
_MAX_CELL_CHARACTERS = 128 * 1024
STANDARD_INPUT = Path("standard input")
JSON_SUFFIXES = (".jsonl", ".ndjson")
EXCEL_SUFFIX = ".xlsx"
_EXCEL_MAGIC = b"PK\x03\x04"


class ColumnSelection(NamedTuple):
    """The columns to read: required ones, optional ones, and whether all of the file."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    whole_record: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The required and the optional columns."""
        return self.required + self.optional


def csv_records(
    path: Path, lines: Iterator[str], *, strict: bool = True, dialect: Dialect = CSV
) -> Iterator[tuple[int, list[str]]]:
    """Split separated lines as RFC 4180 says; yield line numbers and fields, header first.

    Unless ``strict``, a stray quote is accepted and a record of empty cells is a blank line.
    """
    reader = csv.reader(lines, delimiter=dialect.separator, quotechar=dialect.quote, strict=strict)
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


def tsv_records(
    path: Path, lines: Iterator[str], *, dialect: Dialect = TSV
) -> Iterator[tuple[int, list[str]]]:
    """Split separated lines, in which quotes have no meaning; see `csv_records`."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if text:
            fields = text.split(dialect.separator)
            if len(text) > _MAX_CELL_CHARACTERS:
                _check_cells(path, number, fields)
            yield number, fields


def _check_cells(path: Path, line: int, fields: Sequence[str]) -> None:
    longest = max(map(len, fields))
    if longest > _MAX_CELL_CHARACTERS:
        raise InputError(
            f"{location(path, line=line)}: a cell has {longest:,} characters; at most "
            f"{_MAX_CELL_CHARACTERS:,} are allowed."
        )


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
    columns = match_columns(names, selection.names)
    check_header(path, names, selection.required, selection.optional)
    record_names = unique_names(names)
    positions = {name: names.index(column) for name, column in columns.items()}
    absent = dict.fromkeys(name for name in selection.optional if name not in columns)
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
        value = record.get(name)
        if value is None and name not in record:
            value = record.get(match_columns(record, (name,)).get(name, name))
        row.cells[name] = checked_cell(row, name, value)
    return row


def _copied_value(row: Row, name: str, value: object) -> object:
    return row.cells[name] if name in row.cells else checked_value(row, name, value)


def text_rows(stream: PeekedStream, suffix: str, selection: ColumnSelection) -> Iterator[Row]:
    """Stream the rows of CSV, TSV or JSON lines in the dialect of the file."""
    if suffix in JSON_SUFFIXES:
        return _json_rows(stream.path, stream.lines(), selection)
    dialect = _stream_dialect(stream, suffix)
    encoding = stream.encoding(legacy=True)
    differences = describe_dialect(dialect, DEFAULT_DIALECTS[suffix])
    if encoding not in (None, "utf-8"):
        differences.append(f"text in {encoding}")
    if differences:
        log_form(stream.path, f"read with {', '.join(differences)}")
    split = partial(_dialect_records, dialect=dialect)
    return delimited_rows(split, stream.path, stream.lines(legacy=True), selection)


def _stream_dialect(stream: PeekedStream, suffix: str) -> Dialect:
    return detect_dialect(
        stream.head_text(legacy=True),
        DEFAULT_DIALECTS[suffix],
        separator=stream.file_format.separator,
    )


def _dialect_records(
    path: Path, lines: Iterator[str], *, dialect: Dialect
) -> Iterator[tuple[int, list[str]]]:
    first = next(lines, "")
    # A blank line in place of the separator keeps the line numbers.
    lines = chain(["\n" if separator_line(first) else first], lines)
    if dialect.quote is None:
        return tsv_records(path, lines, dialect=dialect)
    return csv_records(path, lines, dialect=dialect)


def text_columns(stream: PeekedStream, suffix: str) -> tuple[str, ...]:
    """Read the column names of CSV or TSV, or of the first rows of JSON lines."""
    if suffix in JSON_SUFFIXES:
        return _json_names(stream)
    dialect = _stream_dialect(stream, suffix)
    records = _dialect_records(stream.path, stream.lines(legacy=True), dialect=dialect)
    _, header = next(records, (1, []))
    return tuple(name.strip() for name in header)


def _json_names(stream: PeekedStream) -> tuple[str, ...]:
    """Return the keys of the first rows, which may differ from row to row."""
    names: dict[str, None] = {}
    lines = [line for line in stream.head_text(legacy=True).splitlines() if line.strip()]
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            # The last line may be cut; a bad first line has no names.
            break
        if not isinstance(record, dict):
            break
        names |= dict.fromkeys(map(str.strip, record))
    return tuple(names)


def stream_suffix(stream: PeekedStream) -> str:
    """Detect the format of an open stream, as a suffix."""
    if is_excel(stream):
        raise InputError(f"{stream.path}: is an Excel workbook; give the name of its file.")
    is_json = stream.head_text(legacy=True).lstrip().startswith("{")
    return ".jsonl" if is_json else ".tsv"


def is_excel(stream: PeekedStream) -> bool:
    """Detect an Excel workbook, which is a zip file."""
    return bool(stream.head) and stream.head[0].startswith(_EXCEL_MAGIC)


def file_rows(
    path: Path, suffix: str, selection: ColumnSelection, file_format: FileFormat = DETECTED
) -> Iterator[Row]:
    """Stream the rows of a text file or an Excel workbook."""
    if suffix != EXCEL_SUFFIX:
        with open_bytes(path) as source:
            stream = PeekedStream(path, source, file_format)
            if not is_excel(stream):
                yield from text_rows(stream, suffix, selection)
                return
            log_form(path, "read as an Excel workbook, which it is")
    yield from delimited_rows(_excel_lines, path, iter(()), selection)


def _excel_lines(path: Path, _lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    return excel_records(path)


def file_columns(path: Path, suffix: str, file_format: FileFormat = DETECTED) -> tuple[str, ...]:
    """Read the column names of a text file or an Excel workbook."""
    if suffix != EXCEL_SUFFIX:
        with open_bytes(path) as source:
            stream = PeekedStream(path, source, file_format)
            if not is_excel(stream):
                return text_columns(stream, suffix)
    with closing(excel_records(path)) as records:
        _, header = next(records, (1, []))
        return tuple(name.strip() for name in header)


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
            columns = list(match_columns(names, selection.names).values())
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
    names = match_columns(table.schema.names, selection.names)
    columns = _python_columns(path, table.select(list(names.values())))
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
