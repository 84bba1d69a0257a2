"""One row of a data file: its checked cells, its location for messages, its gold score."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from condsim.errors import InputError
from condsim.types import is_marks

Cell = str | float | int | None
Record = Mapping[str, object]

MAX_CELL_CHARACTERS = 128 * 1024
"""Limit of a cell, as the csv module has it: a text of a megabyte takes a model half a minute."""

_EMPTY_RECORD: Record = MappingProxyType({})
_MAX_REPR_CHARACTERS = 60
_MAX_LISTED_NAMES = 12


class ColumnSelection(NamedTuple):
    """The columns to read: required ones, optional ones, and whether all of the file."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    whole_record: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The required and the optional columns."""
        return self.required + self.optional


class Row(NamedTuple):
    """One data row of a file.

    Attributes:
        number: Number of the row, from 1, not counting the header and blank lines.
        line: Physical line of the file on which the row starts, from 1; None in Parquet.
        cells: The requested columns, without spaces around texts; None where the file lacks one.
        record: Every column in the order of the file, if requested; a value is anything JSON can
            hold. A second column called ``note`` is named ``note.1``.
    """

    path: Path
    number: int
    line: int | None
    cells: dict[str, Cell]
    record: Record = _EMPTY_RECORD

    def location(self, column: str | None = None) -> str:
        """Name the row, or one of its columns, for an error message."""
        return location(self.path, row=self.number, line=self.line, column=column)

    def text(self, column: str, *, is_condition: bool | None = None) -> str:
        """Return a text cell that is not empty.

        A condition must be more than punctuation; by default, the column ``condition`` holds them.
        """
        value = self.value(column)
        if is_condition is None:
            is_condition = column == "condition"
        if isinstance(value, str) and not (is_condition and is_marks(value)):
            return value
        rule = "have a letter, digit or symbol" if isinstance(value, str) else "be text"
        raise InputError(f"{self.location(column)}: must {rule}, got {short_repr(value)}.")

    def value(self, column: str) -> str | float | int:
        """Return a cell that is not empty."""
        value = self.cells[column]
        if value is None or value == "":
            raise InputError(f"{self.location(column)}: must not be empty.")
        return value

    def score(
        self, column: str, *, label_range: tuple[float, float], alternative: str = ""
    ) -> float:
        """Return a cell that is a number within a range; the message names an ``alternative``."""
        cell, where = self.cells[column], self.location(column)
        return score_of(cell, where, label_range=label_range, alternative=alternative)


def location(
    path: Path, *, row: int | None = None, line: int | None = None, column: str | None = None
) -> str:
    """Name a location in a file, such as ``pairs.csv, row 3 (line 4), column 'label'``."""
    text = str(path)
    if row is not None:
        text += f", row {row}" + (f" (line {line})" if line is not None else "")
    elif line is not None:
        text += f", line {line}"
    return text + (f", column {column!r}" if column is not None else "")


def long_cell_error(where: str, characters: int) -> InputError:
    """Make the error for a cell past the limit."""
    return InputError(
        f"{where}: a cell has {characters:,} characters; at most {MAX_CELL_CHARACTERS:,} are "
        "allowed."
    )


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


def score_of(
    value: Cell, where: str, *, label_range: tuple[float, float], alternative: str = ""
) -> float:
    """Convert a cell to a number within a range; the location begins the error message."""
    low, high = label_range
    score = number_of(value)
    if score is None or not low <= score <= high:
        raise InputError(
            f"{where}: must be a number from {low:g} to {high:g}{alternative}, got "
            f"{short_repr(value)}."
        )
    return score


def match_header(
    where: str, names: Sequence[str], columns: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, str]:
    """Match the names of a file as `match_columns` does.

    Names that lack one of ``columns``, or repeat one that is read, are rejected.
    """
    stripped = [name.strip() for name in names]
    repeated = sorted({name for name in (*columns, *optional) if stripped.count(name.strip()) > 1})
    if repeated:
        raise InputError(
            f"{where}: each column name must occur once, got {join_names(repeated)} more than once."
        )
    matches = match_columns(names, (*columns, *optional))
    missing = [name for name in columns if name not in matches]
    if missing:
        unused = [name for name in names if name not in columns]
        hint = _missing_hint(names, missing, unused)
        raise missing_columns(where, missing, names, hint=hint)
    return matches


class MissingColumnsError(InputError):
    """A file lacks columns; a command says which options name them."""

    missing: Sequence[str] = ()


def missing_columns(
    where: str, missing: Sequence[str], names: Sequence[str], *, hint: str = "", advice: str = ""
) -> MissingColumnsError:
    """Make the error for a file that lacks columns; hint and advice begin with a space.

    With advice, a command adds none.
    """
    subject, verb = ("column", "is") if len(missing) == 1 else ("columns", "are")
    error = MissingColumnsError(
        f"{where}: {subject} {join_names(missing)} {verb} missing; found "
        f"{join_names(names) or 'none'}.{hint}{advice}"
    )
    error.missing = () if advice else missing
    return error


def _missing_hint(names: Sequence[str], missing: Sequence[str], unused: Sequence[str]) -> str:
    """Suggest another separator, or the unused columns to rename to the missing ones."""
    if len(names) == 1 and any(separator in names[0] for separator in ",;\t"):
        return " The cells must be separated by a comma in .csv and by a tab in .tsv."
    by_folded_name = {name.casefold(): name for name in unused}
    new_names: dict[str, str] = {}
    for name in missing:
        for match in difflib.get_close_matches(name.casefold(), by_folded_name, n=1):
            new_names.setdefault(by_folded_name[match], name)
    pairs = [f"{short_repr(old)} to {short_repr(new)}" for old, new in new_names.items()]
    return f" Rename {', '.join(pairs)}." if pairs else header_hint(names)


def header_hint(names: Sequence[str]) -> str:
    """Say what to do if a first line that looks like a row of texts is one."""
    longest = max(names, key=len, default="")
    words = len(longest.split())
    if words > 5 or (words > 2 and longest.endswith((".", "!", "?"))):
        return " If the first line is a row, put a line with the names of the columns before it."
    return ""


def match_columns(names: Iterable[str], columns: Sequence[str]) -> dict[str, str]:
    """Return the name in ``names`` of each column that is there; spaces around it are ignored."""
    actual = {name.strip(): name for name in reversed([*names])}
    actual |= {name: name for name in names}
    matches = {name: actual.get(name, actual.get(name.strip())) for name in columns}
    return {name: match for name, match in matches.items() if match is not None}


def unique_names(names: Sequence[str]) -> list[str]:
    """Rename repeated names: the second ``note`` becomes ``note.1``."""
    given, unique = set(names), dict[str, None]()
    last_numbers: dict[str, int] = {}
    for name in names:
        candidate, number = name, last_numbers.get(name, 0)
        while candidate in unique or (number and candidate in given):
            number += 1
            candidate = f"{name}.{number}"
        last_numbers[name] = number
        unique[candidate] = None
    return list(unique)


def join_names(names: Sequence[str]) -> str:
    """List names for a message; of many, the first ones and how many more there are."""
    number = len(names) - _MAX_LISTED_NAMES
    more = f" and {number} more" if number > 0 else ""
    return ", ".join(short_repr(name) for name in names[:_MAX_LISTED_NAMES]) + more


def typed_row(row: Row, record: Record, selection: ColumnSelection) -> Row:
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
