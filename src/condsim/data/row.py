"""One row of a data file: its checked cells, its location for messages, its gold score."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from condsim.errors import InputError
from condsim.types import is_marks

Cell = str | float | int | None
Record = Mapping[str, object]

_IMPOSSIBLE_TEXT = re.compile("[\0\ud800-\udfff]")
_EMPTY_RECORD: Record = MappingProxyType({})
_MAX_REPR_CHARACTERS = 60
_MAX_LISTED_NAMES = 12


class Row(NamedTuple):
    """One data row of a file.

    Attributes:
        number: Number of the row, from 1, not counting the header and blank lines.
        line: Physical line of the file on which the row starts, from 1; None in Parquet.
        cells: The requested columns; an optional column that the file lacks is None.
        record: Every column in the order of the file, if requested; a value is anything JSON can
            hold. A second column called ``note`` is named ``note.1``.
    """

    path: Path
    number: int
    line: int | None
    cells: dict[str, Cell]
    record: Record = _EMPTY_RECORD

    def place(self, column: str | None = None) -> str:
        """Name the row, or one of its columns, for an error message."""
        return location(self.path, row=self.number, line=self.line, column=column)

    def text(self, column: str, *, is_condition: bool | None = None) -> str:
        """Return a text cell that is not empty.

        A condition must be more than punctuation; by default, the column ``condition`` holds them.
        """
        value = self.cells[column]
        if is_condition is None:
            is_condition = column == "condition"
        if isinstance(value, str) and value and not (is_condition and is_marks(value)):
            return value
        if value is None or value == "":
            raise InputError(f"{self.place(column)}: must not be empty.")
        rule = "have a letter, digit or symbol" if isinstance(value, str) else "be text"
        raise InputError(f"{self.place(column)}: must {rule}, got {short_repr(value)}.")

    def score(self, column: str, *, label_range: tuple[float, float], fix: str = "") -> float:
        """Return a cell that is a number within a range; ``fix`` ends the message otherwise."""
        return score_of(self.cells[column], self.place(column), label_range=label_range, fix=fix)


def location(
    path: Path, *, row: int | None = None, line: int | None = None, column: str | None = None
) -> str:
    """Name a place in a file, such as ``pairs.csv, row 3 (line 4), column 'label'``."""
    text = str(path)
    if row is not None:
        text += f", row {row}" + (f" (line {line})" if line is not None else "")
    elif line is not None:
        text += f", line {line}"
    return text + (f", column {column!r}" if column is not None else "")


def short_repr(value: object) -> str:
    """Return the `repr` of a value, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= _MAX_REPR_CHARACTERS else f"{text[: _MAX_REPR_CHARACTERS - 3]}..."


def number_of(value: Cell) -> float | None:
    """Convert a cell to a number; None if it is not one."""
    try:
        return None if value is None else float(value)
    except (ValueError, OverflowError):
        return None


def score_of(value: Cell, where: str, *, label_range: tuple[float, float], fix: str = "") -> float:
    """Convert a cell at the location ``where`` to a number within a range."""
    low, high = label_range
    score = number_of(value)
    if score is None or not low <= score <= high:
        hint = label_hint(value, high=high) or (f" {fix}" if fix else "")
        raise InputError(
            f"{where}: must be a number from {low:g} to {high:g}, got {short_repr(value)}.{hint}"
        )
    return score


def label_hint(value: Cell, *, high: float) -> str:
    """Name the number to write for a label that only ``condsim adapt`` accepts."""
    if str(value).casefold() not in ("alike", "different"):
        return ""
    low = 1 if high > 1 else 0
    return f" Only 'condsim adapt' reads words: write {high:g} for alike and {low} for different."


def checked_cell(row: Row, column: str, value: object) -> Cell:
    """Check a requested cell of a format that has types."""
    # pandas writes NaN for an empty cell.
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if not isinstance(value, str):
        raise InputError(f"{row.place(column)}: must be text or a number, got {short_repr(value)}.")
    _check_unicode(row, column, value)
    return value.strip()


def checked_value(row: Row, column: str, value: object) -> object:
    """Check a cell that is only copied: anything JSON can hold in valid Unicode."""
    _check_unicode(row, column, column)
    # pandas writes NaN for an empty cell, which JSON does not have.
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, bool):
        return value
    if value is None or isinstance(value, str | int | float):
        return checked_cell(row, column, value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        rule = "nested less deeply" if isinstance(error, RecursionError) else "a value of JSON"
        raise InputError(
            f"{row.place(column)}: must be {rule}, got a {type(value).__name__}."
        ) from None
    _check_unicode(row, column, text)
    return value


def _check_unicode(row: Row, column: str, text: str) -> None:
    if _IMPOSSIBLE_TEXT.search(text):
        raise InputError(
            f"{row.place(column)}: contains a NUL or half of a surrogate pair, got "
            f"{short_repr(text)}. Text must be valid Unicode."
        )


def check_header(
    path: Path, names: Sequence[str], columns: Sequence[str], more: Sequence[str]
) -> None:
    """Reject a header that lacks a column, or has one of ``columns`` or ``more`` twice."""
    stripped = [name.strip() for name in names]
    repeated = sorted({name for name in (*columns, *more) if stripped.count(name.strip()) > 1})
    if repeated:
        raise InputError(
            f"{path}, header: each column name must occur once, got {join_names(repeated)} "
            "more than once."
        )
    check_columns(f"{path}, header", names, columns)


def check_columns(where: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Reject a row or a header that lacks a column; suggest which columns to rename."""
    missing = [name for name in columns if name not in names]
    if missing:
        columns_found = match_columns(names, missing)
        missing = [name for name in missing if name not in columns_found]
    if not missing:
        return
    unused = {name.casefold(): name for name in names if name not in columns}
    new_names: dict[str, str] = {}
    for name in missing:
        for match in difflib.get_close_matches(name.casefold(), unused, n=1):
            new_names.setdefault(unused[match], name)
    hint = ""
    if len(names) == 1 and any(separator in names[0] for separator in ",;\t"):
        hint = " The cells must be separated by a comma in .csv and by a tab in .tsv."
    elif new_names:
        pairs = [f"{short_repr(old)} to {short_repr(new)}" for old, new in new_names.items()]
        hint = f" Rename {', '.join(pairs)}."
    subject = "column" if len(missing) == 1 else "columns"
    verb = "is" if len(missing) == 1 else "are"
    raise InputError(
        f"{where}: {subject} {join_names(missing)} {verb} missing; found "
        f"{join_names(names) or 'none'}.{hint}"
    )


def match_columns(names: Iterable[str], columns: Sequence[str]) -> dict[str, str]:
    """Find columns by their names without the spaces around them.

    Returns:
        The name in ``names`` of each of ``columns`` that is there; the exact one goes first.
    """
    actual = {name.strip(): name for name in reversed([*names])}
    actual |= {name: name for name in names}
    matches = {name: actual.get(name, actual.get(name.strip())) for name in columns}
    return {name: match for name, match in matches.items() if match is not None}


def unique_names(names: Sequence[str]) -> list[str]:
    """Rename repeated names: the second ``note`` becomes ``note.1``."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate in unique or (number and candidate in names):
            number += 1
            candidate = f"{name}.{number}"
        unique.append(candidate)
    return unique


def join_names(names: Sequence[str]) -> str:
    """List names for a message; of many, the first ones and how many more there are."""
    number = len(names) - _MAX_LISTED_NAMES
    more = f" and {number} more" if number > 0 else ""
    return ", ".join(short_repr(name) for name in names[:_MAX_LISTED_NAMES]) + more
