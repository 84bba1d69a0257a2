"""The formats a data file may have: text decoded line by line, and Parquet by way of pyarrow."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from condsim.data.row import (
    Row,
    Wanted,
    check_columns,
    check_header,
    kept_cell,
    place,
    shown,
    typed_cell,
    unique_names,
)
from condsim.errors import InputError, require

_LONGEST_LINE = 16 * 1024 * 1024  # bytes; keeps a file with no line ends out of memory
_PARQUET_BATCH = 1024  # rows
_GZIP_MAGIC = b"\x1f\x8b"


def open_bytes(path: Path) -> BinaryIO:
    """Opens a file to read its bytes; one whose name ends in ``.gz`` is unpacked on the way."""
    try:
        if path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({error.strerror}).") from None


def file_lines(path: Path) -> Generator[str, None, None]:
    """Opens a file and decodes it line by line; see `decoded_lines`."""
    with open_bytes(path) as stream:
        yield from decoded_lines(path, stream)


def decoded_lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Decodes UTF-8 line by line, line ends included; drops a byte-order mark at the start."""
    offset = 0
    number = 0
    while raw := _next_line(path, stream, number):
        number += 1
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if number == 1 and raw.startswith(_GZIP_MAGIC):
                raise InputError(f"{path}: is packed by gzip. Let its name end in .gz.") from None
            raise InputError(
                f"{place(path, line=number)}, byte {offset + error.start} of the file: not valid "
                f"UTF-8 (0x{raw[error.start]:02x}, {error.reason}). Save the file as UTF-8; if its "
                "encoding is Windows-1252, 'iconv -f cp1252 -t utf-8' does that."
            ) from None
        if "\0" in text:
            raise InputError(
                f"{place(path, line=number)}, byte {offset + raw.index(0)} of the file: NUL byte. "
                "The file must be text in UTF-8; this one is damaged, binary or UTF-16."
            )
        offset += len(raw)
        yield text.removeprefix("\ufeff") if number == 1 else text


def _next_line(path: Path, stream: BinaryIO, number: int) -> bytes:
    """Reads the line after ``number`` lines; empty at the end of the file."""
    try:
        raw = stream.readline(_LONGEST_LINE + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}, after line {number}: not a whole gzip file ({error}). Copy it again."
        ) from None
    except OSError as error:
        raise InputError(f"{path}, after line {number}: cannot be read ({error}).") from error
    if len(raw) > _LONGEST_LINE:
        raise InputError(
            f"{place(path, line=number + 1)}: is longer than {_LONGEST_LINE >> 20} MiB. Lines must "
            "end with LF or CRLF; check that this is a text file with one row a line."
        )
    return raw


def csv_records(
    path: Path, lines: Iterator[str], *, strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Splits comma separated lines, quoted as RFC 4180 says; a header is a record like others."""
    # Unless ``strict``, a stray quote is forgiven and a record of empty cells is a blank line.
    reader = csv.reader(lines, strict=strict)
    row = 0  # the header's
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            where = place(path, row=row, line=line) if row else f"{path}, header (line {line})"
            raise InputError(f"{where}: {_csv_fault(str(error))}") from None
        if fields is None:
            return
        if fields and (strict or any(field.strip() for field in fields)):
            yield line, fields
            row += 1


def _csv_fault(error: str) -> str:
    """Puts what the csv module says into words that name the rule and the fix."""
    if "unexpected end" in error:
        return (
            "a quoted cell must be closed, and is still open at the end of the file. Close the "
            'quote, or write a quote inside a quoted cell twice ("").'
        )
    if "field limit" in error:
        return (
            "a cell must have at most 128 KiB; a quoted cell is still open after 128 KiB. Shorten "
            'it, or close the quote; write a quote inside a quoted cell twice ("").'
        )
    if "expected after" in error:
        return (
            "a closing quote must be followed by a comma or the end of the line. Write a quote "
            'inside a quoted cell twice (""), and look for an earlier quote that is not closed.'
        )
    return f"not valid CSV ({error}). Lines must end with LF or CRLF; quote cells with line ends."


def tsv_records(_path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Splits tab separated lines; a quote is a character like any other, a header a record."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if text:
            yield number, text.split("\t")


Records = Callable[[Path, Iterator[str]], Iterator[tuple[int, list[str]]]]


def delimited_rows(
    records_of: Records, path: Path, lines: Iterator[str], wanted: Wanted
) -> Iterator[Row]:
    """Streams the rows of a file whose first record is a header."""
    records = records_of(path, lines)
    _, header = next(records, (1, []))
    if not header:
        return
    names = [name.strip() for name in header]
    check_header(path, names, wanted)
    unique = unique_names(names)
    index = {name: names.index(name) for name in wanted.names if name in names}
    absent = dict.fromkeys(name for name in wanted.optional if name not in names)
    for number, (line, fields) in enumerate(records, start=1):
        if len(fields) != len(names):
            raise InputError(
                f"{place(path, row=number, line=line)}: must have {len(names)} fields as the "
                f"header has, got {len(fields)}. Either the line is cut off or a cell holds "
                "the separator or a quote (in CSV such a cell is quoted)."
            )
        row = Row(path, number, line, absent | {n: fields[i].strip() for n, i in index.items()})
        if wanted.others:
            row = row._replace(record=dict(zip(unique, map(str.strip, fields), strict=True)))
        yield row


def json_rows(path: Path, lines: Iterator[str], wanted: Wanted) -> Iterator[Row]:
    """Streams the rows of a file with one JSON object a line."""
    number = 0
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        number += 1
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = (
                f"{error.msg} at character {error.pos + 1}"
                if isinstance(error, json.JSONDecodeError)
                else str(error)
            )
            raise InputError(
                f"{place(path, row=number, line=line)}: not valid JSON ({reason}). Each line must "
                'be one whole object, such as {"sentence1": "...", ...}.'
            ) from None
        if not isinstance(record, dict):
            raise InputError(
                f"{place(path, row=number, line=line)}: must be a JSON object, got {shown(record)}."
                " Write one object a line, without a list around them."
            )
        if not record.keys() >= set(wanted.columns):
            check_columns(place(path, row=number, line=line), list(record), wanted.columns)
        yield _typed_row(Row(path, number, line, {}), record, wanted)


def _typed_row(row: Row, record: dict[str, Any], wanted: Wanted) -> Row:
    """Fills a row with the checked values of a format that has types."""
    for name in wanted.names:
        row.cells[name] = typed_cell(row, name, record.get(name))
    if not wanted.others:
        return row
    kept = {
        name: row.cells[name] if name in row.cells else kept_cell(row, name, value)
        for name, value in record.items()
    }
    return row._replace(record=kept)


TEXT_ROWS: dict[str, Callable[[Path, Iterator[str], Wanted], Iterator[Row]]] = {
    ".csv": partial(delimited_rows, csv_records),
    ".tsv": partial(delimited_rows, tsv_records),
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
"""Readers of text by the suffix of the file."""


def text_names(path: Path, suffix: str) -> tuple[str, ...]:
    """The columns of a text file: its header, or the keys of its first JSON object."""
    if suffix not in (*TEXT_ROWS, ".txt"):
        return ()
    with closing(file_lines(path)) as lines:
        if TEXT_ROWS.get(suffix) is json_rows:
            record = json.loads(next((line for line in lines if line.strip()), "{}"))
            return tuple(record) if isinstance(record, dict) else ()
        records = csv_records(path, lines) if suffix == ".csv" else tsv_records(path, lines)
        _, header = next(records, (1, []))
        return tuple(name.strip() for name in header)


def parquet_rows(path: Path, wanted: Wanted) -> Iterator[Row]:
    """Streams the rows of a Parquet file, a batch of 1,024 rows at a time."""
    parquet = require("pyarrow.parquet", extra="parquet")
    arrow_error = require("pyarrow", extra="parquet").ArrowException
    number = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            names = list(file.schema_arrow.names)
            check_header(path, names, wanted)
            kept = None if wanted.others else [name for name in wanted.names if name in names]
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH, columns=kept):
                unique = unique_names(list(batch.schema.names))
                columns = [column.to_pylist() for column in batch.columns]
                for index in range(len(batch)):
                    number += 1
                    values = (_json_value(column[index]) for column in columns)
                    record = dict(zip(unique, values, strict=True))
                    yield _typed_row(Row(path, number, None, {}), record, wanted)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, after row {number}: text is not valid UTF-8 ({error.reason}). Write the "
            "file again with UTF-8 text."
        ) from None
    except (arrow_error, OSError) as error:
        raise InputError(
            f"{path}, after row {number}: not a whole Parquet file ({str(error).splitlines()[0]}). "
            "Write or copy it again."
        ) from None


def _json_value(value: object) -> object:
    """Dates, times and decimals as text; anything else as it is."""
    if type(value).__module__ in ("datetime", "decimal"):
        return str(value)
    return value
