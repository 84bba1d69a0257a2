"""The formats of data files: CSV, TSV and JSON lines, Excel, and Parquet read with pyarrow."""

from __future__ import annotations

import csv
import datetime
import json
import math
import re
import warnings
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from condsim.data.row import (
    Cell,
    Record,
    Row,
    location,
    match_columns,
    match_header,
    short_repr,
    unique_names,
)
from condsim.data.text import (
    CSV,
    DEFAULT_DIALECTS,
    TSV,
    Dialect,
    PeekedStream,
    describe_dialect,
    detect_dialect,
    log_form,
    separator_line,
)
from condsim.errors import InputError, require

if TYPE_CHECKING:
    import pyarrow as pa

    Records = Iterator[tuple[int, list[str]]]
    """The line number and the cells of each record, the header first."""

STANDARD_INPUT = Path("standard input")
JSON_SUFFIXES = (".jsonl", ".ndjson")
EXCEL_SUFFIX = ".xlsx"

_ROWS_READ_AT_ONCE = 256
# As the csv module has it: a text of a megabyte takes a model half a minute.
_MAX_CELL_CHARACTERS = 128 * 1024
_IMPOSSIBLE_TEXT = re.compile("[\0\ud800-\udfff]")


class ColumnSelection(NamedTuple):
    """The columns to read: required ones, optional ones, and whether all of the file."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    whole_record: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The required and the optional columns."""
        return self.required + self.optional


def stream_suffix(stream: PeekedStream) -> str:
    """Detect the format of an open stream, as a suffix."""
    if stream.is_excel:
        raise InputError(f"{stream.path}: is an Excel workbook; give the name of its file.")
    return ".jsonl" if stream.head_text().lstrip().startswith("{") else ".tsv"


def stream_rows(stream: PeekedStream, suffix: str, selection: ColumnSelection) -> Iterator[Row]:
    """Stream the rows of a text file or an Excel workbook."""
    if suffix in JSON_SUFFIXES and not stream.is_excel:
        return _json_rows(stream, selection)
    return table_rows(stream.path, _table_records(stream, suffix, log=True), selection)


def stream_columns(stream: PeekedStream, suffix: str) -> tuple[str, ...]:
    """Read the column names of a table, or those of the first rows of JSON lines."""
    if suffix in JSON_SUFFIXES and not stream.is_excel:
        return _json_names(stream)
    _, header = next(_table_records(stream, suffix, log=False), (1, []))
    return tuple(name.strip() for name in header)


# Tables of texts


def _table_records(stream: PeekedStream, suffix: str, *, log: bool) -> Records:
    """Split a table into records; ``log`` its form if that is not the one of its suffix."""
    if suffix == EXCEL_SUFFIX or stream.is_excel:
        if log and suffix != EXCEL_SUFFIX:
            log_form(stream.path, "read as an Excel workbook, which it is")
        return _excel_records(stream.path)
    default = DEFAULT_DIALECTS[suffix]
    dialect = detect_dialect(stream.head_text(), default, separator=stream.file_format.separator)
    encoding = stream.encoding(legacy=True)
    differences = describe_dialect(dialect, default)
    if encoding not in (None, "utf-8"):
        differences.append(f"text in {encoding}")
    if log and differences:
        log_form(stream.path, f"read with {', '.join(differences)}")
    lines = stream.lines(legacy=True)
    first = next(lines, "")
    # A blank line in place of the separator keeps the line numbers.
    lines = chain(["\n" if separator_line(first) else first], lines)
    if dialect.quote is None:
        return tsv_records(stream.path, lines, dialect=dialect)
    return csv_records(stream.path, lines, dialect=dialect)


def csv_records(
    path: Path, lines: Iterator[str], *, strict: bool = True, dialect: Dialect = CSV
) -> Records:
    """Split separated lines as RFC 4180 says.

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


def tsv_records(path: Path, lines: Iterator[str], *, dialect: Dialect = TSV) -> Records:
    """Split separated lines, in which quotes have no meaning."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if not text:
            continue
        fields = text.split(dialect.separator)
        if len(text) > _MAX_CELL_CHARACTERS:
            longest = max(map(len, fields))
            if longest > _MAX_CELL_CHARACTERS:
                raise InputError(
                    f"{location(path, line=number)}: a cell has {longest:,} characters; at most "
                    f"{_MAX_CELL_CHARACTERS:,} are allowed."
                )
        yield number, fields


def _excel_records(path: Path) -> Records:
    """Read the rows of the first sheet that are not blank, with openpyxl."""
    number = 0
    # The header decides how many cells the other rows have.
    width = 0
    try:
        with path.open("rb") as stream:
            values = _first_sheet(path, stream)
            while block := _next_values(values):
                for row in block:
                    number += 1
                    cells = [_excel_text(value) for value in row]
                    while len(cells) > width and not cells[-1]:
                        cells.pop()
                    if any(cells):
                        width = width or len(cells)
                        yield number, cells + [""] * (width - len(cells))
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, SyntaxError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}, after row {number}: not a complete Excel workbook ({reason})."
        ) from None


def _first_sheet(path: Path, stream: BinaryIO) -> Iterator[tuple[object, ...]]:
    openpyxl = require("openpyxl", extra="excel")
    # openpyxl warns of styles and checks of cells that it does not read.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
    sheet = book.worksheets[0]
    # The size that a sheet states may be wrong.
    sheet.reset_dimensions()
    if len(book.worksheets) > 1:
        log_form(path, f"read from the first of {len(book.worksheets)} sheets, {sheet.title!r}")
    return cast(Iterator[tuple[object, ...]], sheet.iter_rows(values_only=True))


def _next_values(values: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(islice(values, _ROWS_READ_AT_ONCE))


def _excel_text(value: object) -> str:
    """Format a cell as text: whole numbers without a point, dates as ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)


def table_rows(path: Path, records: Records, selection: ColumnSelection) -> Iterator[Row]:
    """Stream the rows of a table of texts, whose first record is the header."""
    _, header = next(records, (1, []))
    if not header:
        return
    names = [name.strip() for name in header]
    columns = match_header(f"{path}, header", names, selection.required, selection.optional)
    positions = {name: names.index(column) for name, column in columns.items()}
    absent = dict.fromkeys(name for name in selection.optional if name not in columns)
    record_names = unique_names(names)
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


# Formats with types


def _json_rows(stream: PeekedStream, selection: ColumnSelection) -> Iterator[Row]:
    """Stream JSON lines, in which a row may lack a column that other rows have."""
    names = _json_names(stream)
    number = 0
    for line, text in enumerate(stream.lines(), start=1):
        if not text.strip():
            continue
        number += 1
        where = location(stream.path, row=number, line=line)
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
        if number == 1:
            match_header(f"{stream.path}, first rows", names or [*record], selection.required)
        if "\\u" in text:
            _check_unicode(where, record)
        yield _typed_row(Row(stream.path, number, line, {}), record, selection)


def _json_names(stream: PeekedStream) -> tuple[str, ...]:
    """Return the keys of the first rows, which may differ from row to row."""
    names: dict[str, None] = {}
    for line in stream.head_text().splitlines():
        try:
            record = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            # The last line may be cut; a bad first line has no names.
            break
        if not isinstance(record, dict):
            break
        names |= dict.fromkeys(map(str.strip, record))
    return tuple(names)


def _check_unicode(where: str, record: Record) -> None:
    for name, value in record.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if _IMPOSSIBLE_TEXT.search(name + text):
            raise InputError(
                f"{where}, column {short_repr(name)}: contains a NUL or half of a surrogate pair, "
                f"got {short_repr(value)}. Text must be valid Unicode."
            )


def _typed_row(row: Row, record: Record, selection: ColumnSelection) -> Row:
    """Fill in the cells of an empty row, and its whole record, from values that have types."""
    for name in selection.names:
        # Most names match as they are; else the spaces around them are ignored.
        column = name if name in record else match_columns(record, (name,)).get(name, name)
        row.cells[name] = _typed_cell(row, name, _stripped(record.get(column)))
    if selection.whole_record:
        row = row._replace(record={name: _stripped(value) for name, value in record.items()})
    return row


def _stripped(value: object) -> object:
    """Strip a text; NaN, which pandas writes for an empty cell, becomes None."""
    if isinstance(value, str):
        return value.strip()
    return None if isinstance(value, float) and math.isnan(value) else value


def _typed_cell(row: Row, column: str, value: object) -> Cell:
    if isinstance(value, bool):
        # As CSV has it, so that every reader of labels knows it.
        return str(value).lower()
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"{row.location(column)}: must be text or a number, got {short_repr(value)}.")


def parquet_tables(
    path: Path, selection: ColumnSelection, size: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Stream a Parquet file in tables, each with the number of its first row."""
    parquet = require("pyarrow.parquet", extra="parquet")
    number = 1
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            names = list(file.schema_arrow.names)
            columns = match_header(f"{path}, header", names, selection.required, selection.optional)
            chosen = None if selection.whole_record else list(columns.values())
            for table in file.iter_batches(batch_size=size, columns=chosen):
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
    """Convert an Arrow table to rows."""
    if not selection.whole_record:
        columns = match_columns(table.schema.names, selection.names)
        table = table.select(list(dict.fromkeys(columns.values())))
    for number, record in enumerate(arrow_records(path, table), start=first_number):
        yield _typed_row(Row(path, number, None, {}), record, selection)


def arrow_records(path: Path, table: pa.RecordBatch) -> list[dict[str, Any]]:
    """Convert an Arrow table to records; dates, times and decimals become text."""
    try:
        records = table.rename_columns(unique_names(table.schema.names)).to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: text is not valid UTF-8 ({error.reason}).") from None
    for record in records:
        for name, value in record.items():
            if isinstance(value, bytes):
                raise InputError(f"{path}, column {name!r}: must be text or a number, got bytes.")
            if type(value).__module__ in ("datetime", "decimal"):
                record[name] = str(value)
    return cast(list[dict[str, Any]], records)
