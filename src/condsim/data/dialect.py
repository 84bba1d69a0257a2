"""Separator and quote of a table, detected from its first lines."""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

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
        if header and all(_is_quoted(name.strip(), quote) for name in header):
            return dialect._replace(quote=quote)
    if dialect.quote is None:
        # Cells with a tab or a line end in quotes make the numbers of fields unequal.
        quoted = dialect._replace(quote='"')
        if _regularity(head, quoted)[0] == 1 > _regularity(head, unquoted)[0] > 0:
            return quoted
    return dialect


def _is_quoted(name: str, quote: str) -> bool:
    return len(name) > 1 and name[0] == name[-1] == quote


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
