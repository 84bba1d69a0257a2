"""Rows of Parquet files, by way of pyarrow."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from condsim.errors import InputError, require
from condsim.tasks.rows.row import Cell, Row, check_columns, check_header, place, shown, typed_cell

_LONGEST_LINE = 16 * 1024 * 1024  # bytes; keeps a file with no line ends out of memory


def open_bytes(path: Path) -> BinaryIO:
    """Opens a file to read its bytes.

    Args:
        path: The file; one whose name ends in ``.gz`` is unpacked on the way.

    Returns:
        The open file; the caller closes it.

    Raises:
        InputError: If it cannot be opened.
    """
    try:
        if path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({error.strerror}).") from None


def decoded_lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Decodes a file line by line; a byte-order mark at its start is dropped.

    Args:
        path: The file, for messages.
        stream: Its bytes.

    Yields:
        Each line with its line end (LF or CRLF).

    Raises:
        InputError: At a byte that is not UTF-8, a NUL, a line of more than 16 MiB, or the place
            where a damaged gzip file cannot be unpacked.
    """
    offset = 0
    number = 0
    while raw := _next_line(path, stream, number):
        number += 1
        where = place(path, line=number)
        if len(raw) > _LONGEST_LINE:
            limit = _LONGEST_LINE >> 20
            raise InputError(
                f"{where}: is longer than {limit} MiB. Lines must end with LF or CRLF; check that "
                "this is a text file with one row a line."
            )
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where}, byte {offset + error.start} of the file: not valid UTF-8 "
                f"(0x{raw[error.start]:02x}, {error.reason}). Save the file as UTF-8."
            ) from None
        if "\0" in text:
            raise InputError(
                f"{where}, byte {offset + raw.index(0)} of the file: NUL byte. The file must be "
                "text in UTF-8; this one is damaged, binary or UTF-16."
            )
        offset += len(raw)
        yield text.removeprefix("\ufeff") if number == 1 else text


def _next_line(path: Path, stream: BinaryIO, number: int) -> bytes:
    """Reads the line after ``number`` lines; empty at the end of the file."""
    try:
        return stream.readline(_LONGEST_LINE + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}, after line {number}: not a whole gzip file ({error}). Copy it again."
        ) from None


def csv_records(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Splits the lines of a comma separated file; a header is a record like any other."""
    reader = csv.reader(lines, strict=True)
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
        if fields:
            yield line, fields
            row += 1


def _csv_fault(error: str) -> str:
    """Puts what the csv module says into words that name the rule and the fix."""
    if "unexpected end" in error or "field limit" in error:
        found = "at the end of the file" if "unexpected end" in error else "after 128 KiB"
        return (
            f"a quoted cell must be closed, and is still open {found}. Close the quote, "
            'or write a quote inside a quoted cell twice ("").'
        )
    if "expected after" in error:
        return (
            "a closing quote must be followed by a comma or the end of the line. Write a quote "
            'inside a quoted cell twice (""), and look for an earlier quote that is not closed.'
        )
    return f"not valid CSV ({error}). Lines must end with LF or CRLF; quote cells with line ends."


def tsv_records(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Splits the lines of a tab separated file; a header is a record like any other."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if text:
            yield number, text.split("\t")


def _delimited_rows(
    path: Path,
    columns: tuple[str, ...],
    optional: tuple[str, ...],
    records_of: Callable[[Path, Iterator[str]], Iterator[tuple[int, list[str]]]],
) -> Iterator[Row]:
    with open_bytes(path) as stream:
        records = records_of(path, decoded_lines(path, stream))
        _, header = next(records, (1, []))
        if not header:
            return
        names = [name.strip() for name in header]
        check_header(path, names, columns)
        wanted = [(name, names.index(name)) for name in (*columns, *optional) if name in names]
        absent: dict[str, Cell] = {name: None for name in optional if name not in names}
        for number, (line, fields) in enumerate(records, start=1):
            if len(fields) != len(names):
                raise InputError(
                    f"{place(path, row=number, line=line)}: must have {len(names)} fields as the "
                    f"header has, got {len(fields)}. Either the line is cut off or a cell holds "
                    "the separator or a quote (in CSV such a cell is quoted)."
                )
            cells = absent | {name: fields[index].strip() for name, index in wanted}
            yield Row(number, line, cells)


def csv_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a comma separated file, quoted as RFC 4180 says."""
    return _delimited_rows(path, columns, optional, csv_records)


def tsv_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a tab separated file; a quote is a character like any other."""
    return _delimited_rows(path, columns, optional, tsv_records)


def json_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a file with one JSON object a line."""
    number = 0
    with open_bytes(path) as stream:
        for line, text in enumerate(decoded_lines(path, stream), start=1):
            if not text.strip():
                continue
            number += 1
            where = place(path, row=number, line=line)
            try:
                record = json.loads(text)
            except (ValueError, RecursionError) as error:
                reason = (
                    f"{error.msg} at character {error.pos + 1}"
                    if isinstance(error, json.JSONDecodeError)
                    else str(error)
                )
                raise InputError(
                    f"{where}: not valid JSON ({reason}). Each line must be one whole object, "
                    'such as {"sentence1": "...", ...}.'
                ) from None
            if not isinstance(record, dict):
                raise InputError(
                    f"{where}: must be a JSON object, got {shown(record)}. Write one object a "
                    "line, without a list around them."
                )
            check_columns(where, list(record), columns)
            cells = {
                name: typed_cell(record.get(name), place(path, row=number, line=line, column=name))
                for name in (*columns, *optional)
            }
            yield Row(number, line, cells)


_PARQUET_BATCH = 1024  # rows


def parquet_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a Parquet file, a batch of 1,024 rows at a time."""
    parquet = require("pyarrow.parquet", extra="parquet")
    arrow_error = require("pyarrow", extra="parquet").ArrowException
    number = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            names = list(file.schema_arrow.names)
            check_header(path, names, columns)
            kept = [name for name in (*columns, *optional) if name in names]
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH, columns=kept):
                for record in batch.to_pylist():
                    number += 1
                    cells = {
                        name: typed_cell(record.get(name), place(path, row=number, column=name))
                        for name in (*columns, *optional)
                    }
                    yield Row(number, None, cells)
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
