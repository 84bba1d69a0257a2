"""Rows with labels of this package, and how rows and manifests in files are read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from condsim.data.files import iter_rows
from condsim.data.row import Row, number_of, short_repr
from condsim.errors import InputError, located, one_line
from condsim.rows.records import RowT, TableRow, column_types, manifest_of

DOES_NOT_APPLY = -1
"""Label of a row whose condition does not apply to the pair."""


@dataclass(frozen=True, slots=True)
class TrainingRow(TableRow):
    """A row of training data; a short answer may take the place of a sentence.

    Attributes:
        label: Similarity from 1 to 5.
        origin: Source of the label, such as ``given``, or ``model:`` and the names of models.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    origin: str


@dataclass(frozen=True, slots=True)
class WeakRow(TrainingRow):
    """A weakly labeled row; -1 where the attribute is absent. Its origin names the function."""

    label: int


@dataclass(frozen=True, slots=True)
class AnsweredRow(WeakRow):
    """A weakly labeled row with the values of both sentences; empty if absent."""

    answer1: str
    answer2: str


def read_rows(path: Path | str, kind: type[RowT]) -> Iterator[RowT]:
    """Stream the rows of a file in bounded memory; formats as `iter_rows` reads them.

    Columns whose field has a default may be absent. InputError names the file, the row and the
    column of a cell that is empty or of the wrong type.
    """
    types = column_types(kind)
    optional = [field.name for field in fields(kind) if field.default is not MISSING]
    required = [name for name in types if name not in optional]
    for row in iter_rows(Path(path), columns=required, optional=optional):
        values: dict[str, Any] = {
            name: _cell_value(row, name, types[name])
            for name in (*required, *optional)
            if name in required or row.cells[name] not in (None, "")
        }
        with located(row.location()):
            record = kind(**values)
        yield record


def _cell_value(row: Row, column: str, kind: type) -> str | float | int:
    """Convert a cell to the type of its field."""
    cell = row.value(column)
    if kind is str:
        return str(cell)
    number = number_of(cell)
    if number is None or not math.isfinite(number) or (kind is int and not number.is_integer()):
        rule = "a whole number" if kind is int else "a number"
        raise InputError(f"{row.location(column)}: must be {rule}, got {short_repr(cell)}.")
    return int(number) if kind is int else number


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Read the manifest of a file; None if it is missing, `InputError` if it is damaged."""
    manifest = manifest_of(path)
    if not manifest.exists():
        return None
    advice = f"Remove it and make {path.name} again."
    with one_line(f"{manifest} cannot be read", OSError, ValueError, TypeError, advice=advice):
        return dict(json.loads(manifest.read_text(encoding="utf-8")))
