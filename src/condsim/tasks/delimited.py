"""Rows of CSV files (RFC 4180) and of TSV files (no quoting)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from condsim.errors import InputError
from condsim.tasks.lines import decoded_lines, open_bytes
from condsim.tasks.row import Cell, Row, check_header, place

__all__ = ["csv_records", "csv_rows", "tsv_records", "tsv_rows"]


def csv_records(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Splits the lines of a comma separated file; a header is a record like any other.

    Args:
        path: The file, for messages.
        lines: Its lines.

    Yields:
        First line from 1 and fields of each record that is not blank.

    Raises:
        InputError: Where the quoting is wrong.
    """
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
    """Splits the lines of a tab separated file; a header is a record like any other.

    Args:
        path: The file; not used, there are no faults to tell.
        lines: Its lines.

    Yields:
        Number from 1 and fields of each line that is not blank.
    """
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
    """Streams the rows of a comma separated file, quoted as RFC 4180 says.

    Args:
        path: The file.
        columns: Columns that the file must have.
        optional: Columns that are None where the file lacks them.

    Returns:
        Iterator over the rows.

    Raises:
        InputError: At the first place that breaks a rule of the format.
    """
    return _delimited_rows(path, columns, optional, csv_records)


def tsv_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a tab separated file; a quote is a character like any other.

    Args:
        path: The file.
        columns: Columns that the file must have.
        optional: Columns that are None where the file lacks them.

    Returns:
        Iterator over the rows.

    Raises:
        InputError: At the first place that breaks a rule of the format.
    """
    return _delimited_rows(path, columns, optional, tsv_records)
