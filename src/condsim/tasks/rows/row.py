"""One row of a data file, and how its place and its faults are named in messages."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from condsim.errors import InputError

Cell = str | float | int | None

_SURROGATE = re.compile("[\ud800-\udfff]")


class Row(NamedTuple):
    """One data row of a file.

    Attributes:
        number: Number of the row, from 1, not counting the header and blank lines.
        line: Physical line of the file on which the row starts, from 1; None in Parquet.
        cells: The wanted columns; an optional column that the file lacks is None.
    """

    number: int
    line: int | None
    cells: dict[str, Cell]


class RowReader(Protocol):
    """Reads the rows of one format."""

    def __call__(
        self, path: Path, columns: tuple[str, ...], optional: tuple[str, ...]
    ) -> Iterator[Row]:
        """Streams the rows."""


def place(
    path: Path, *, row: int | None = None, line: int | None = None, column: str | None = None
) -> str:
    """Names a place in a file for an error message.

    Args:
        path: The file.
        row: Data row, from 1.
        line: Physical line, from 1.
        column: Name of the column.

    Returns:
        Text such as ``pairs.csv, row 3 (line 4), column 'label'``.
    """
    text = str(path)
    if row is not None:
        text += f", row {row}" + (f" (line {line})" if line is not None else "")
    elif line is not None:
        text += f", line {line}"
    return text + (f", column {column!r}" if column is not None else "")


def shown(value: object) -> str:
    """Shows a value in an error message, cut to 60 characters.

    Args:
        value: What the file has.

    Returns:
        Its `repr`, on one line.
    """
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def typed_cell(value: object, where: str) -> Cell:
    """Checks a cell of a format that has types."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if not isinstance(value, str):
        raise InputError(f"{where}: must be text or a number, got {shown(value)}.")
    if "\0" in value or _SURROGATE.search(value):
        raise InputError(
            f"{where}: holds a NUL or half of a surrogate pair, got {shown(value)}. Text must be "
            "valid Unicode; remove the character."
        )
    return value.strip()


def text_cell(path: Path, row: Row, column: str) -> str:
    """Gives a cell that must be text.

    Args:
        path: The file, for messages.
        row: The row.
        column: Name of the column.

    Returns:
        The text, not empty.

    Raises:
        InputError: If it is empty or no text.
    """
    value = row.cells[column]
    if isinstance(value, str) and value:
        return value
    where = place(path, row=row.number, line=row.line, column=column)
    if value is None or value == "":
        raise InputError(f"{where}: must not be empty. Write the text, or remove the row.")
    raise InputError(f"{where}: must be text, got {shown(value)}. Write it as text, in quotes.")


def score_of(value: Cell, where: str, *, label_range: tuple[float, float], fix: str) -> float:
    """Gives a gold score as a number.

    Args:
        value: What the file has.
        where: The place, as `place` names it.
        label_range: Lowest and highest score that may be.
        fix: What to do about a score that may not, one sentence.

    Returns:
        The score.

    Raises:
        InputError: If it is no number or out of the range.
    """
    low, high = label_range
    try:
        score = math.nan if value is None else float(value)
    except (ValueError, OverflowError):
        score = math.nan
    if not low <= score <= high:
        raise InputError(
            f"{where}: must be a number from {low:g} to {high:g}, got {shown(value)}. {fix}"
        )
    return score


def check_header(path: Path, names: list[str], columns: tuple[str, ...]) -> None:
    """Checks that the header has every wanted column, and none twice."""
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InputError(
            f"{path}, header: each column name must occur once, got {_listed(twice)} more than "
            "once. Rename or remove the extra column."
        )
    check_columns(f"{path}, header", names, columns)


def check_columns(where: str, names: list[str], columns: tuple[str, ...]) -> None:
    """Checks that every wanted column is there."""
    missing = [name for name in columns if name not in names]
    if not missing:
        return
    folded = {name.casefold(): name for name in names if name not in columns}
    near = [
        folded[match]
        for name in missing
        for match in difflib.get_close_matches(name.casefold(), folded, n=1)
    ]
    hint = f"Did you mean {_listed(near)}? Rename it." if near else "Add it to the file."
    if len(names) == 1 and any(separator in names[0] for separator in ",;\t"):
        hint = "The cells must be separated by a comma in .csv and by a tab in .tsv."
    raise InputError(
        f"{where}: column {_listed(missing)} is missing; found {_listed(names) or 'none'}. {hint}"
    )


def _listed(names: list[str]) -> str:
    more = ", ..." if len(names) > 12 else ""
    return ", ".join(shown(name) for name in names[:12]) + more
