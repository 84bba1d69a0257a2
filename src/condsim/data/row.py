"""One row of a data file, and how messages name its place and its faults."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from condsim.errors import InputError
from condsim.types import is_marks

Cell = str | float | int | None

_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")
_NO_RECORD: Mapping[str, object] = MappingProxyType({})


class Wanted(NamedTuple):
    """The columns that a row must have, may have, and whether to keep all others too."""

    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()
    others: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The required and the optional columns."""
        return self.columns + self.optional


def place(
    path: Path, *, row: int | None = None, line: int | None = None, column: str | None = None
) -> str:
    """Names a place in a file, such as ``pairs.csv, row 3 (line 4), column 'label'``."""
    text = str(path)
    if row is not None:
        text += f", row {row}" + (f" (line {line})" if line is not None else "")
    elif line is not None:
        text += f", line {line}"
    return text + (f", column {column!r}" if column is not None else "")


def shown(value: object) -> str:
    """Gives the `repr` of a value for an error message, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Row(NamedTuple):
    """One data row of a file.

    Attributes:
        number: Number of the row, from 1, not counting the header and blank lines.
        line: Physical line of the file on which the row starts, from 1; None in Parquet.
        cells: The wanted columns; an optional column that the file lacks is None.
        record: Every column in the order of the file, if that was asked for; a value is anything
            JSON can hold. The second column called ``note`` is ``note.1``.
    """

    path: Path
    number: int
    line: int | None
    cells: dict[str, Cell]
    record: Mapping[str, object] = _NO_RECORD

    def place(self, column: str | None = None) -> str:
        """Names the row, or one of its columns, for an error message."""
        return place(self.path, row=self.number, line=self.line, column=column)

    def text(self, column: str) -> str:
        """Gives a cell; an `InputError` if it is no text, is empty, or is a condition of marks."""
        value = self.cells[column]
        if isinstance(value, str) and value and not (column == "condition" and is_marks(value)):
            return value
        where = self.place(column)
        if value is None or value == "":
            raise InputError(f"{where}: must not be empty. Write the text, or remove the row.")
        if isinstance(value, str):
            raise InputError(
                f"{where}: must have a letter, digit or symbol, not punctuation alone, got "
                f"{shown(value)}. Write it, or remove the row."
            )
        raise InputError(f"{where}: must be text, got {shown(value)}. Write it as text, in quotes.")

    def score(self, column: str, *, label_range: tuple[float, float], fix: str) -> float:
        """Gives a gold score.

        Args:
            column: One of the wanted columns.
            label_range: Lowest and highest valid score.
            fix: What to do about an invalid score, one sentence.

        Raises:
            InputError: If it is no number or out of the range.
        """
        return score_of(self.cells[column], self.place(column), label_range=label_range, fix=fix)


def number_of(value: Cell) -> float | None:
    """Reads a cell as a number; None if it is none."""
    try:
        return None if value is None else float(value)
    except (ValueError, OverflowError):
        return None


def score_of(value: Cell, where: str, *, label_range: tuple[float, float], fix: str) -> float:
    """Checks a gold score at a place that `place` named; see `Row.score`."""
    low, high = label_range
    score = number_of(value)
    if score is None or not low <= score <= high:
        raise InputError(
            f"{where}: must be a number from {low:g} to {high:g}, got {shown(value)}. "
            f"{label_fix(value, fix, high=high)}"
        )
    return score


def label_fix(value: Cell, fix: str, *, high: float) -> str:
    """What to do about a label: ``fix``, or for a word of ``condsim adapt`` the number of it."""
    if str(value).casefold() not in ("alike", "different"):
        return fix
    low = 1 if high > 1 else 0
    return f"Only 'condsim adapt' reads words: write {high:g} for alike and {low} for different."


def typed_cell(row: Row, column: str, value: object) -> Cell:
    """Checks a wanted cell of a format that has types."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if not isinstance(value, str):
        raise InputError(f"{row.place(column)}: must be text or a number, got {shown(value)}.")
    if _IMPOSSIBLE.search(value):
        raise _not_unicode(row, column, value)
    return value.strip()


def kept_cell(row: Row, column: str, value: object) -> object:
    """Checks a cell that is only passed on: anything JSON can hold in valid Unicode."""
    if _IMPOSSIBLE.search(column):
        raise _not_unicode(row, column, column)
    if isinstance(value, float) and math.isnan(value):
        return None  # what pandas writes for an empty cell, and JSON does not have
    if value is None or isinstance(value, str | int | float):  # bool is an int
        return value if isinstance(value, bool) else typed_cell(row, column, value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        rule = "nested less deeply" if isinstance(error, RecursionError) else "a value of JSON"
        raise InputError(
            f"{row.place(column)}: must be {rule}, got a {type(value).__name__}. Change the cells, "
            "or remove the column."
        ) from None
    if _IMPOSSIBLE.search(text):
        raise _not_unicode(row, column, value)
    return value


def _not_unicode(row: Row, column: str, value: object) -> InputError:
    return InputError(
        f"{row.place(column)}: holds a NUL or half of a surrogate pair, got {shown(value)}. Text "
        "must be valid Unicode; remove the character."
    )


def check_header(path: Path, names: list[str], wanted: Wanted) -> None:
    """Refuses a header that lacks a required column, or has a wanted one twice."""
    twice = sorted({name for name in wanted.names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"{path}, header: each column name must occur once, got {_listed(twice)} more than "
            "once. Rename or remove the extra column."
        )
    check_columns(f"{path}, header", names, wanted.columns)


def check_columns(where: str, names: list[str], columns: tuple[str, ...]) -> None:
    """Checks that every required column is there."""
    missing = [name for name in columns if name not in names]
    if not missing:
        return
    folded = {name.casefold(): name for name in names if name not in columns}
    near: dict[str, str] = {}  # what a column must be called
    for name in missing:
        for match in difflib.get_close_matches(name.casefold(), folded, n=1):
            near.setdefault(folded[match], name)
    hint = f"Add {'it' if len(missing) == 1 else 'them'} to the file."
    if near:
        renamed = ", ".join(f"{shown(old)} to {shown(name)}" for old, name in near.items())
        hint = f"Rename {renamed}."
        if all(old.casefold() == name.casefold() for old, name in near.items()):
            hint = f"Names are case-sensitive: rename {renamed}."
    elif len(folded) >= len(missing) > 1:
        hint = "Rename your columns to these."
    elif folded:
        hint = f"Rename yours, or a{hint[1:]}"
    if len(names) == 1 and any(separator in names[0] for separator in ",;\t"):
        hint = "The cells must be separated by a comma in .csv and by a tab in .tsv."
    missed = (
        f"columns {_listed(missing)} are" if len(missing) > 1 else f"column {_listed(missing)} is"
    )
    raise InputError(f"{where}: {missed} missing; found {_listed(names) or 'none'}. {hint}")


def unique_names(names: list[str]) -> list[str]:
    """Tells repeated names apart: the second ``note`` becomes ``note.1``."""
    unique: list[str] = []
    for name in names:
        given, number = name, 0
        while given in unique or (number and given in names):
            number += 1
            given = f"{name}.{number}"
        unique.append(given)
    return unique


def _listed(names: list[str]) -> str:
    more = ", ..." if len(names) > 12 else ""
    return ", ".join(shown(name) for name in names[:12]) + more
