"""Tables of labeled texts: texts with attributes, text pairs with labels, or any table.

The criteria of a row are conditions: a text has values in each, a pair of texts has labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from condsim.data.batch import BlankRows
from condsim.data.files import column_names, iter_rows
from condsim.data.row import Row, short_repr
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError, check_name

_TEXT_FORM = ("text", "attributes")
_PAIR_FORM = ("text1", "text2", "labels")


@dataclass(frozen=True, slots=True)
class CriteriaText:
    """A text and its attributes.

    Attributes:
        text: The text, not empty.
        attributes: The values of each criterion that the text mentions, one or more, none empty.
        location: File and row, for error messages.
    """

    text: str
    attributes: Mapping[str, tuple[str, ...]]
    location: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CriteriaPair:
    """Two texts and how alike they are in each criterion.

    Attributes:
        text1: The first text, not empty.
        text2: The second text, not empty.
        labels: Similarity by criterion, from 0 (different) to 1 (the same).
        location: File and row, for error messages.
    """

    text1: str
    text2: str
    labels: Mapping[str, float]
    location: str = field(default="", compare=False)


def iter_criteria(
    path: Path | str,
    *,
    text: str = "text",
    criteria: Sequence[str] | None = None,
    separator: str | None = None,
    file_format: FileFormat = DETECTED,
    blank: BlankRows | None = None,
) -> Iterator[CriteriaText | CriteriaPair]:
    """Stream texts or text pairs with labeled attributes in bounded memory.

    The form is detected from the columns, in JSON lines from the keys of the first row:

    - ``text`` and ``attributes``: texts, ``{"text": ..., "attributes": {criterion: value or
      [values]}}``; a criterion that a text does not mention is left out.
    - ``text1``, ``text2`` and ``labels``: pairs, ``{"text1": ..., "text2": ..., "labels":
      {criterion: number}}``, from 0 for different to 1 for the same.
    - Everything else is a table: a column of texts, and a column for each criterion whose name is
      the condition. An empty cell means that the text does not mention it.

    Args:
        path: A file as `condsim.data.files.iter_rows` reads it.
        text: The column of texts in a table.
        criteria: The criteria to read; by default all, in a table every other column.
        separator: Separator of several values in a cell of a table, such as ``"|"``; by default
            each cell is one value.
        file_format: Character set and separator of cells, if they are not to be detected.
        blank: Counts rows without text, which are left out; by default they are rejected.

    Yields:
        The rows in file order, also those that mention no criterion. Repeated values of a text
        occur once.

    Raises:
        InputError: If the file cannot be read, a text is empty or not text, a value or label is
            malformed, ``separator`` is empty, or a criterion of ``criteria`` occurs in no row.
        MissingExtraError: If the file is Parquet and pyarrow is missing.
    """
    path = Path(path)
    if separator == "":
        raise InputError("The 'separator' must have at least one character; got ''.")
    names = set(column_names(path, file_format))
    counted = blank or BlankRows(strict=True)

    def read(*columns: str) -> Iterator[Row]:
        rows = iter_rows(path, columns=columns, whole_record=True, file_format=file_format)
        return (row for _, row in counted.present(rows, columns))

    rows: Iterator[CriteriaText | CriteriaPair]
    if set(_PAIR_FORM) <= names:
        rows = map(_read_criteria_pair, read(*_PAIR_FORM[:2]))
    elif set(_TEXT_FORM) <= names:
        rows = map(_read_criteria_text, read(*_TEXT_FORM[:1]))
    else:
        rows = _read_table(read(text), text=text, separator=separator)
    seen: dict[str, None] = {}
    for row in rows:
        seen |= dict.fromkeys(row.attributes if isinstance(row, CriteriaText) else row.labels)
        yield row if criteria is None else _select(row, criteria)
    for name in criteria or ():
        check_name(f"criterion in {path}", name, seen)


def has_criteria_columns(names: Sequence[str]) -> bool:
    """Tell whether a file with these columns is a table, with a column for each criterion."""
    return not (set(_PAIR_FORM) <= {*names} or set(_TEXT_FORM) <= {*names})


def _select(
    row: CriteriaText | CriteriaPair, criteria: Sequence[str]
) -> CriteriaText | CriteriaPair:
    """Reduce a row to some criteria, in their order."""
    if isinstance(row, CriteriaPair):
        labels = {name: row.labels[name] for name in criteria if name in row.labels}
        return replace(row, labels=labels)
    attributes = {name: row.attributes[name] for name in criteria if name in row.attributes}
    return replace(row, attributes=attributes)


def _read_criteria_text(row: Row) -> CriteriaText:
    where = row.location("attributes")
    values = {
        name: _criterion_values(name, value, where)
        for name, value in _criteria_cell(row, "attributes").items()
    }
    attributes = {name: words for name, words in values.items() if words}
    return CriteriaText(row.text("text"), attributes, row.location())


def _read_criteria_pair(row: Row) -> CriteriaPair:
    labels = {}
    for name, value in _criteria_cell(row, "labels").items():
        number = value if isinstance(value, int | float) else math.nan
        if not 0 <= number <= 1:
            raise InputError(
                f"{row.location('labels')}: {short_repr(name)} must be a number from 0 (different) "
                f"to 1 (the same), got {short_repr(value)}."
            )
        labels[name] = float(number)
    return CriteriaPair(row.text("text1"), row.text("text2"), labels, row.location())


def _read_table(rows: Iterable[Row], *, text: str, separator: str | None) -> Iterator[CriteriaText]:
    for row in rows:
        attributes: dict[str, tuple[str, ...]] = {}
        for name, value in row.record.items():
            # The index column of a pandas file has no name.
            if name != text and name.strip("_ "):
                words = _criterion_values(name, value, row.location(name), separator=separator)
                attributes |= {name: words} if words else {}
        yield CriteriaText(row.text(text), attributes, row.location())


def _criteria_cell(row: Row, column: str) -> Mapping[str, object]:
    """Return the cell that holds a row's criteria, an object with the value of each by name."""
    value = row.record.get(column)
    if not isinstance(value, Mapping) or not all(map(str.strip, value)):
        raise InputError(
            f"{row.location(column)}: must be an object with a key for each criterion, none of "
            f"them empty, got {short_repr(value)}."
        )
    return {name.strip(): item for name, item in value.items()}


def _criterion_values(
    name: str, value: object, where: str, *, separator: str | None = None
) -> tuple[str, ...]:
    """Return the distinct values of a criterion as texts; a value is a list or one cell."""
    parts: list[object] = [value]
    if isinstance(value, list | tuple):
        parts = list(value)
    elif isinstance(value, str) and separator is not None:
        parts = list(value.split(separator))
    texts: dict[str, None] = {}
    for part in parts:
        if part is None or (isinstance(part, float) and math.isnan(part)):
            continue
        if not isinstance(part, str | int | float):
            raise InputError(
                f"{where}: the value of {short_repr(name)} must be a text, a number or a list of "
                f'them, such as "red" or ["red", "blue"], got {short_repr(part)}.'
            )
        text = str(part).lower() if isinstance(part, bool) else str(part)
        text = text.removesuffix(".0") if isinstance(part, float) else text.strip()
        if text:
            texts[text] = None
    return tuple(texts)
