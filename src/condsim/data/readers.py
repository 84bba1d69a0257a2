"""Readers of text formats: CSV, TSV and JSON lines."""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from condsim.data.batch import Batch, in_blocks
from condsim.data.dialect import (
    CSV,
    TSV,
    Dialect,
    describe_dialect,
    detect_dialect,
    separator_line,
)
from condsim.data.row import (
    MAX_CELL_CHARACTERS,
    ColumnSelection,
    Record,
    Row,
    location,
    long_cell_error,
    match_header,
    short_repr,
    typed_row,
    unique_names,
)
from condsim.data.text import MAX_LINE_BYTES, PeekedStream, log_form
from condsim.errors import InputError

if TYPE_CHECKING:
    Records = Iterator[tuple[int, list[str]]]
    """The line number and the cells of each record, the header first."""

_COMMA_ADVICE = "In CSV, quote a cell that contains a comma."
# What may come next in an array, by what came before.
_ARRAY_MARKS = {"start": "[", "item": "]", "after": ",]"}
_IMPOSSIBLE_TEXT = re.compile("[\0\ud800-\udfff]")


class Reader(ABC):
    """Reader of an open file, which tells the names of its columns before its rows.

    Attributes:
        ragged: Whether rows may differ in their columns.
    """

    ragged = False

    def __init__(self, stream: PeekedStream) -> None:
        self.stream = stream
        self.path = stream.path

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Read the names of the columns, without spaces around."""

    @abstractmethod
    def rows(self, selection: ColumnSelection) -> Iterator[Row]:
        """Stream the rows."""

    def batches(self, selection: ColumnSelection, size: int) -> Iterator[Batch]:
        """Stream the rows in batches, with all their columns."""
        blocks = in_blocks(self.rows(selection), size)
        return (Batch(block, ragged=self.ragged) for block in blocks)


# Tables of texts


class TableReader(Reader):
    """Reader of a table of texts, whose first record is the header.

    Attributes:
        advice: What to do about a row that is longer than the header.
    """

    advice = _COMMA_ADVICE

    @abstractmethod
    def records(self) -> Records:
        """Split the table into records, the header first."""

    @cached_property
    def _records(self) -> Records:
        return self.records()

    @cached_property
    def _header(self) -> tuple[int, list[str]]:
        return next(self._records, (1, []))

    def names(self) -> tuple[str, ...]:
        """Read the cells of the header."""
        return tuple(name.strip() for name in self._header[1])

    def rows(self, selection: ColumnSelection) -> Iterator[Row]:
        """Stream the rows below the header."""
        records = chain([self._header], self._records)
        return table_rows(self.path, records, selection, advice=self.advice)


class CsvReader(TableReader):
    """Reader of CSV; another separator, quote or encoding is detected and logged."""

    dialect = CSV

    def records(self) -> Records:
        """Split the table in the dialect that its first lines tell."""
        stream, default = self.stream, self.dialect
        separator = stream.file_format.separator
        dialect = detect_dialect(stream.head_text(), default, separator=separator)
        encoding = stream.encoding(legacy=True)
        differences = describe_dialect(dialect, default)
        if encoding not in (None, "utf-8"):
            differences.append(f"text in {encoding}")
        if differences:
            log_form(self.path, f"read with {', '.join(differences)}")
        lines = stream.lines(legacy=True)
        first = next(lines, "")
        # A blank line in place of the separator keeps the line numbers.
        lines = chain(["\n" if separator_line(first) else first], lines)
        if dialect.quote is None:
            return tsv_records(self.path, lines, dialect=dialect)
        return csv_records(self.path, lines, dialect=dialect)


class TsvReader(CsvReader):
    """Reader of TSV; another separator, quote or encoding is detected and logged."""

    dialect = TSV


class LinesReader(TableReader):
    """Reader of ``.txt``: a text on each line, in the column ``text``; or TSV, told by a tab."""

    def records(self) -> Records:
        """Make a record of each line."""
        first = next(filter(str.strip, self.stream.head_text().splitlines()), "")
        if "\t" in first or self.stream.file_format.separator is not None:
            return TsvReader(self.stream).records()
        log_form(self.path, "read with a text on each line, in the column 'text'")
        # A line that contains no separator is one cell.
        lines = self.stream.lines(legacy=True)
        return chain([(1, ["text"])], tsv_records(self.path, lines, dialect=Dialect("\n", None)))


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
        if len(text) > MAX_CELL_CHARACTERS:
            longest = max(map(len, fields))
            if longest > MAX_CELL_CHARACTERS:
                raise long_cell_error(location(path, line=number), longest)
        yield number, fields


def table_rows(
    path: Path, records: Records, selection: ColumnSelection, *, advice: str = _COMMA_ADVICE
) -> Iterator[Row]:
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
                f"header has, got {len(fields)}. {advice}"
            )
        cells = {name: fields[position].strip() for name, position in positions.items()}
        row = Row(path, number, line, absent | cells)
        if selection.whole_record:
            stripped = [field.strip() for field in fields]
            row = row._replace(record=dict(zip(record_names, stripped, strict=True)))
        yield row


# JSON


class JsonReader(Reader):
    """Reader of JSON lines, or of an array of objects; a row may lack a column that others have."""

    ragged = True

    @property
    def _is_array(self) -> bool:
        return self.stream.head_text().lstrip().startswith("[")

    def names(self) -> tuple[str, ...]:
        """Return the keys of the first rows, which may differ from row to row."""
        names: dict[str, None] = {}
        head = self.stream.head_text()
        # The last row may be cut; a bad first row has no names.
        with suppress(ValueError, RecursionError):
            items = array_items([head]) if self._is_array else _line_items(head.splitlines())
            for _, record in items:
                if not isinstance(record, dict):
                    break
                names |= dict.fromkeys(map(str.strip, record))
        return tuple(names)

    def rows(self, selection: ColumnSelection) -> Iterator[Row]:
        """Stream the objects."""
        stream = self.stream
        items = array_items(stream.chunks()) if self._is_array else _line_items(stream.lines())
        for number in count(1):
            try:
                line, record = next(items, (0, None))
            except JsonError as error:
                where = location(self.path, row=number, line=error.line)
                raise InputError(
                    f"{where}: not valid JSON ({error}). Each "
                    'line must be one object, such as {"sentence1": "...", ...}, or the file one '
                    "array of objects."
                ) from None
            if not line:
                return
            where = location(self.path, row=number, line=line)
            if not isinstance(record, dict):
                raise InputError(f"{where}: must be a JSON object, got {short_repr(record)}.")
            if number == 1:
                names = self.names() or [*record]
                match_header(f"{self.path}, first rows", names, selection.required)
            _check_unicode(where, record)
            yield typed_row(Row(self.path, number, line, {}), record, selection)


class JsonError(ValueError):
    """Text is not valid JSON; the message says why."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def _line_items(lines: Iterable[str]) -> Iterator[tuple[int, object]]:
    """Parse each line that is not blank; yield its number and value."""
    for number, text in enumerate(lines, start=1):
        if text.strip():
            try:
                yield number, json.loads(text)
            except json.JSONDecodeError as error:
                raise JsonError(f"{error.msg} at character {error.pos + 1}", number) from None
            except (ValueError, RecursionError) as error:
                raise JsonError(str(error), number) from None


def array_items(chunks: Iterable[str]) -> Iterator[tuple[int, object]]:
    """Parse the items of an array in bounded memory; yield the line on which each starts."""
    decoder = json.JSONDecoder()
    text, line, state = "", 1, "start"
    # An empty chunk marks the end.
    for chunk in chain(chunks, [""]):
        text, position = text + chunk, 0
        while position < len(text):
            mark = text[position]
            if mark.isspace():
                end = position + 1
            elif state == "item" and mark != "]":
                try:
                    value, end = decoder.raw_decode(text, position)
                except (ValueError, RecursionError) as error:
                    reason = getattr(error, "msg", None) or str(error)
                    # An item may go on in the next chunk.
                    if chunk and len(text) - position <= MAX_LINE_BYTES:
                        break
                    raise JsonError(reason, line) from None
                # So may a number.
                if end == len(text) and chunk:
                    break
                yield line, value
                state = "after"
            elif mark in _ARRAY_MARKS.get(state, ""):
                state = "end" if mark == "]" else "item"
                end = position + 1
            else:
                raise JsonError(f"unexpected {mark!r}", line)
            line += text.count("\n", position, end)
            position = end
        text = text[position:]
    if state != "end":
        raise JsonError("the array has no end", line)


def _check_unicode(where: str, record: Record) -> None:
    for name, value in record.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if _IMPOSSIBLE_TEXT.search(name + text):
            raise InputError(
                f"{where}, column {short_repr(name)}: contains a NUL or half of a surrogate pair, "
                f"got {short_repr(value)}. Text must be valid Unicode."
            )
