"""Texts with labelled attributes, each a criterion that two texts can agree in or not."""

# Three forms are read: JSON lines of texts with their attributes, JSON lines of text pairs labelled
# criterion by criterion, and any table with a column of texts and one for each criterion.

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from condsim.data.reading import column_names, iter_rows
from condsim.data.row import Row, shown
from condsim.errors import InputError, unknown_name

_TEXT_FORM = ("text", "attributes")
_PAIR_FORM = ("text1", "text2", "labels")
_VALUES = 'a text, a number or a list of them, such as "red" or ["red", "blue"]'


@dataclass(frozen=True, slots=True)
class CriteriaText:
    """A text and what is known of it.

    Attributes:
        text: The text, not empty.
        attributes: The values of each criterion that the text mentions, one or more, none empty.
        place: File and row, for error messages.
    """

    text: str
    attributes: Mapping[str, tuple[str, ...]]
    place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CriteriaPair:
    """Two texts and how alike they are in each criterion.

    Attributes:
        text1: The first text, not empty.
        text2: The second text, not empty.
        labels: Similarity by criterion, from 0 (different) to 1 (the same).
        place: File and row, for error messages.
    """

    text1: str
    text2: str
    labels: Mapping[str, float]
    place: str = field(default="", compare=False)


def iter_criteria(
    path: Path | str,
    *,
    text: str = "text",
    criteria: Sequence[str] | None = None,
    separator: str | None = None,
) -> Iterator[CriteriaText | CriteriaPair]:
    """Streams texts or text pairs with labelled attributes in bounded memory.

    The form is detected from the columns, in JSON lines from the keys of the first row:

    - ``text`` and ``attributes``: texts, ``{"text": ..., "attributes": {criterion: value or
      [values]}}``; a criterion that a text does not mention is left out.
    - ``text1``, ``text2`` and ``labels``: pairs, ``{"text1": ..., "text2": ..., "labels":
      {criterion: number}}``, from 0 for different to 1 for the same.
    - All else is a table: a column of texts, and a column for each criterion whose name is the
      condition. An empty cell means that the text does not mention it.

    Args:
        path: A file as `iter_rows` reads it.
        text: The column of texts in a table.
        criteria: The criteria to read; by default all, in a table every other column.
        separator: What separates several values in a cell of a table, such as ``"|"``; None takes
            each cell for one value.

    Yields:
        The rows in file order, also those that mention no criterion. Repeated values of a text
        occur once.

    Raises:
        InputError: If the file cannot be read, a text is empty or no text, a value is none, a
            label is no number from 0 to 1, ``separator`` is empty, or a criterion of ``criteria``
            occurs in no row.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    if separator == "":
        raise InputError("The 'separator' of values must be at least one character. Got ''.")
    names = column_names(path)
    wanted = None if criteria is None else dict.fromkeys(criteria)
    seen: dict[str, None] = {}
    rows: Iterator[CriteriaText | CriteriaPair]
    if set(_PAIR_FORM) <= set(names):
        rows = map(_pair, iter_rows(path, columns=_PAIR_FORM[:2], others=True))
    elif set(_TEXT_FORM) <= set(names):
        rows = map(_text, iter_rows(path, columns=_TEXT_FORM[:1], others=True))
    else:
        rows = _table(path, text=text, separator=separator)
    for row in rows:
        known = row.attributes if isinstance(row, CriteriaText) else row.labels
        seen.update(dict.fromkeys(known))
        yield row if wanted is None else _only(row, wanted)
    for name in wanted or ():
        if name not in seen:
            raise unknown_name(f"criterion in {path}", name, seen)


def _only(
    row: CriteriaText | CriteriaPair, wanted: Mapping[str, None]
) -> CriteriaText | CriteriaPair:
    """The row with the wanted criteria, in their order."""
    if isinstance(row, CriteriaPair):
        labels = {name: row.labels[name] for name in wanted if name in row.labels}
        return CriteriaPair(row.text1, row.text2, labels, row.place)
    kept = {name: row.attributes[name] for name in wanted if name in row.attributes}
    return CriteriaText(row.text, kept, row.place)


def _text(row: Row) -> CriteriaText:
    found = {
        name: values
        for name, value in _object(row, "attributes").items()
        if (values := _values(value, row.place("attributes"), name, separator=None))
    }
    return CriteriaText(row.text("text"), found, row.place())


def _pair(row: Row) -> CriteriaPair:
    labels = {}
    for name, value in _object(row, "labels").items():
        number = value if isinstance(value, int | float) else math.nan
        if not 0 <= number <= 1:
            raise InputError(
                f"{row.place('labels')}: {shown(name)} must be a number from 0 (different) to 1 "
                f"(the same), got {shown(value)}. Correct it, or leave the criterion out."
            )
        labels[name] = float(number)
    return CriteriaPair(row.text("text1"), row.text("text2"), labels, row.place())


def _table(path: Path, *, text: str, separator: str | None) -> Iterator[CriteriaText]:
    for row in iter_rows(path, columns=(text,), others=True):
        found = {
            name: values
            for name, value in row.record.items()
            if name != text
            and name.strip("_ ")  # the index of a pandas file has no name
            and (values := _values(value, row.place(name), name, separator=separator))
        }
        yield CriteriaText(row.text(text), found, row.place())


def _object(row: Row, column: str) -> Mapping[str, object]:
    """The criteria of a row, each with what the file has of it."""
    found = row.record.get(column)
    if not isinstance(found, Mapping) or not all(map(str.strip, found)):
        raise InputError(
            f"{row.place(column)}: must be an object with a key for each criterion, none of them "
            f'empty, got {shown(found)}. Write {{"the topic": ...}}, or {{}} for none.'
        )
    return {name.strip(): value for name, value in found.items()}


def _values(value: object, where: str, name: str, *, separator: str | None) -> tuple[str, ...]:
    """The distinct values of a criterion; none where the text does not mention it."""
    parts: list[object] = [value]
    if isinstance(value, list | tuple):
        parts = list(value)
    elif isinstance(value, str) and separator is not None:
        parts = list(value.split(separator))
    found: dict[str, None] = {}
    for part in parts:
        if part is None or (isinstance(part, float) and math.isnan(part)):
            continue
        if not isinstance(part, str | int | float):
            raise InputError(
                f"{where}: the value of {shown(name)} must be {_VALUES}, got {shown(part)}. "
                "Correct it, or leave the criterion out."
            )
        word = str(part).lower() if isinstance(part, bool) else str(part)
        word = word.removesuffix(".0") if isinstance(part, float) else word.strip()
        if word:
            found[word] = None
    return tuple(found)
