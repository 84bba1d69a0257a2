"""Readers of text formats: CSV, TSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from condsim.data.batch import Batch, in_blocks
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

Records = Iterator[tuple[int, list[str]]]
"""The line number and the cells of each record, the header first."""

_COMMA_ADVICE = "In CSV, quote a cell that contains a comma."
# What may come next in an array, by what came before.
_ARRAY_MARKS = {"start": "[", "item": "]", "after": ",]"}
_IMPOSSIBLE_TEXT = re.compile("[\0\ud800-\udfff]")
# Records of the first lines that a dialect is judged by.
_RECORDS = 50
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SEPARATOR_LINE = re.compile(r'"?sep=([^\s"\w]|\t)"?[\r\n]*', re.IGNORECASE)


class Dialect(NamedTuple):
    """Separator of cells, and the quote around a cell that contains it; None if quotes are text."""

    separator: str
    quote: str | None


CSV = Dialect(",", '"')
TSV = Dialect("\t", None)


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


def separator_line(line: str) -> str | None:
    """Return the separator that a first line such as ``sep=;`` names; None for another line."""
    match = _SEPARATOR_LINE.fullmatch(line)
    return match.group(1) if match else None


def detect_dialect(head: str, default: Dialect, *, separator: str | None = None) -> Dialect:
    """Detect the dialect of a table from its first lines.

    The default, for which the suffix stands, is kept unless another dialect gives equal numbers of
    fields to more records. The last record may be incomplete.
    """
    first, _, rest = head.partition("\n")
    if (named := separator_line(first)) is not None:
        head = rest
        separator = separator or named
    if separator is not None:
        is_default = separator == default.separator
        return _with_quote(head, default if is_default else Dialect(separator, '"'))
    best = _with_quote(head, default)
    best_fit = _regularity(head, best)
    if best_fit[0] == 1:
        return best
    for candidate in _SEPARATOR_NAMES:
        dialect = _with_quote(head, Dialect(candidate, default.quote or '"'))
        fit = _regularity(head, dialect)
        if fit[0] > 0.5 and fit > best_fit:
            best, best_fit = dialect, fit
    return best


def _regularity(head: str, dialect: Dialect) -> tuple[float, int]:
    """Return the share of records with as many fields as the header, and that number of fields."""
    counts = [len(fields) for fields in _head_records(head, dialect)]
    # A header of one field does not show that the separator is right.
    if not counts or counts[0] < 2:
        return 0, 0
    return counts.count(counts[0]) / len(counts), counts[0]


def _with_quote(head: str, dialect: Dialect) -> Dialect:
    """Detect the quote of a table with a known separator."""
    unquoted = dialect._replace(quote=None)
    header = next(iter(_head_records(head, unquoted)), [])
    for quote in "\"'":
        # A name of one character is the quote itself.
        if header and all(len(n) > 1 and n[0] == n[-1] == quote for n in map(str.strip, header)):
            return dialect._replace(quote=quote)
    if dialect.quote is None:
        # Cells with a tab or a line end in quotes make the numbers of fields unequal.
        quoted = dialect._replace(quote='"')
        if _regularity(head, quoted)[0] == 1 > _regularity(head, unquoted)[0] > 0:
            return quoted
    return dialect


def _head_records(head: str, dialect: Dialect) -> list[list[str]]:
    """Split the first records, up to a fault, without blank lines."""
    lines = io.StringIO(head, newline="\n")
    if dialect.quote is None:
        texts = (line.rstrip("\r\n") for line in lines)
        return list(islice((text.split(dialect.separator) for text in texts if text), _RECORDS))
    reader = csv.reader(lines, delimiter=dialect.separator, quotechar=dialect.quote, strict=True)
    records: list[list[str]] = []
    # A fault in the table is reported when its rows are read.
    with suppress(csv.Error):
        records.extend(islice(filter(None, reader), _RECORDS))
    return records


def describe_dialect(dialect: Dialect, default: Dialect) -> list[str]:
    """Name what differs from the default."""
    parts = []
    if dialect.separator != default.separator:
        name = _SEPARATOR_NAMES.get(dialect.separator, repr(dialect.separator))
        parts.append(f"{name} between cells")
    is_expected = dialect.quote == '"' and dialect.separator != "\t"
    if dialect.quote not in (default.quote, None) and not is_expected:
        parts.append(f"quotes {dialect.quote} around cells")
    return parts
