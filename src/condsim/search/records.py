"""Rows of an index: the kind of each column, found in a first reading, and their Arrow form."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from condsim.data.files import BlankRows, check_file, iter_rows
from condsim.data.row import Row
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError, check_name
from condsim.paths import sha256_of, suffix_of
from condsim.types import FloatArray, IntArray

Kind = Literal["bool", "float", "int", "json", "text"]
"""Type of a column; ``json`` is any mixture of values, stored as JSON text."""

RowInput = Path | str | Sequence[Mapping[str, object]]
"""A data file, or rows in memory."""

INTERNAL_PREFIX = "condsim_"
KEY = f"{INTERNAL_PREFIX}key"
NUMBER = f"{INTERNAL_PREFIX}number"
VECTOR = f"{INTERNAL_PREFIX}vector"

# Rows encoded and committed at once: bounds the memory, and what a kill can lose.
ROWS_PER_BATCH = 4096

_ARROW_TYPES = {
    "bool": pa.bool_(),
    "float": pa.float64(),
    "int": pa.int64(),
    "json": pa.string(),
    "text": pa.string(),
}
# A number that begins with 0, such as 007, is a code and stays text.
_INT = re.compile(r"-?(0|[1-9]\d*)")
_FLOAT = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,2})?")
_INT64 = range(-(2**63), 2**63)
_MAX_INT64_DIGITS = 20


@dataclass(frozen=True)
class RowSummary:
    """Type of each column, None if all its cells are empty; number and hash of the rows."""

    kinds: Mapping[str, Kind | None]
    rows: int
    digest: str


class RowReader:
    """Rows to index, from a file or from memory, read more than once."""

    def __init__(
        self,
        rows: RowInput,
        text: str,
        key: str | None,
        blank: BlankRows | None = None,
        file_format: FileFormat = DETECTED,
    ) -> None:
        """Reject input that cannot be read twice; ``blank`` counts rows without text."""
        self.rows = Path(rows) if isinstance(rows, str) else rows
        self.text = text
        self.key = key
        self._blank = blank or BlankRows(strict=True)
        self._file_format = file_format
        self._typed = True
        if isinstance(self.rows, Path):
            check_file(self.rows)
            self._typed = suffix_of(self.rows) not in (".csv", ".tsv", ".xlsx")
        elif isinstance(self.rows, Iterator):
            raise InputError("The rows are read twice; give a list, not an iterator.")

    def __iter__(self) -> Iterator[Row]:
        """Stream the rows; those without text only if they are to be rejected."""
        return self._read(BlankRows(strict=self._blank.strict))

    def _read(self, blank: BlankRows) -> Iterator[Row]:
        """Stream the rows, and count those that are left out."""
        for _, row in blank.present(self._rows(), [self.text]):
            yield _with_stored_names(row)

    def _rows(self) -> Iterator[Row]:
        columns = (self.text,) if self.key is None else (self.text, self.key)
        if isinstance(self.rows, Path):
            yield from iter_rows(
                self.rows, columns=columns, whole_record=True, file_format=self._file_format
            )
            return
        for number, record in enumerate(self.rows, start=1):
            if not isinstance(record, Mapping):
                raise InputError(f"rows, row {number}: must be a mapping; got {record!r}.")
            values: dict[str, Any] = {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in record.items()
            }
            cells = {name: values.get(name) for name in columns}
            if str(cells[self.text]).isspace():
                cells[self.text] = ""
            yield Row(Path("rows"), number, None, cells, values)

    def batches(self, *, skip: int = 0) -> Iterator[list[Row]]:
        """Yield the rows in batches, after the first ``skip``."""
        rows = islice(self, skip, None)
        while batch := list(islice(rows, ROWS_PER_BATCH)):
            yield batch

    def summary(self) -> RowSummary:
        """Read all rows once; check their texts, keys and column names; count the left out."""
        kinds: dict[str, Kind | None] = {}
        digests: list[int] = []
        count = 0
        content = hashlib.sha256()
        for row in self._read(self._blank):
            count += 1
            row.text(self.text)
            if self.key is not None:
                digests.append(key_digest(row_key(row, self.key)))
            for name, value in row.record.items():
                if name not in kinds:
                    _check_column_name(row, name)
                kinds[name] = _common_kind(kinds.get(name), self._kind(value), typed=self._typed)
            if not isinstance(self.rows, Path):
                content.update(json.dumps(row.record, default=str).encode())
        if not count:
            raise InputError("At least one row is needed to index; got none.")
        kinds[self.text] = "text"
        self._check_keys(np.array(digests, np.int64))
        digest = sha256_of(self.rows) if isinstance(self.rows, Path) else content.hexdigest()
        return RowSummary(kinds, count, digest)

    def _kind(self, value: object) -> Kind | None:
        match value:
            case None | "":
                return None
            case bool():
                return "bool"
            case int():
                return "int" if value in _INT64 else "json"
            case float():
                return "float"
            case str() if self._typed:
                return "text"
            case str() if _INT.fullmatch(value):
                fits = len(value) <= _MAX_INT64_DIGITS and int(value) in _INT64
                return "int" if fits else "text"
            case str():
                return "float" if _FLOAT.fullmatch(value) else "text"
            case _:
                return "json"

    def _check_keys(self, digests: IntArray) -> None:
        """Reject a key that occurs twice; name its second row."""
        if self.key is None or len(np.unique(digests)) == len(digests):
            return
        seen: set[int] = set()
        for row in self:
            key = row_key(row, self.key)
            if key_digest(key) in seen:
                raise InputError(
                    f"{row.location(self.key)}: the key {key!r} occurs twice. Give another --key, "
                    "or remove the row."
                )
            seen.add(key_digest(key))


def row_key(row: Row, column: str) -> str:
    """Return the key of a row as text; raise `InputError` if it is empty."""
    value = row.cells[column]
    return str(value) if isinstance(value, int | float) else row.text(column)


def key_digest(key: str) -> int:
    """Hash a key to 64 bits, so that millions of keys fit in memory."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _with_stored_names(row: Row) -> Row:
    """Write an underscore for each dot in the names of columns: in filters a dot means a part."""
    if not any("." in str(name) for name in row.record):
        return row
    record: dict[str, object] = {}
    for name, value in row.record.items():
        stored = name if name in row.cells else str(name).replace(".", "_")
        if stored in record:
            raise InputError(
                f"{row.path}: two columns would be stored as {stored!r}, since a repeated name "
                "gets a number and a dot becomes an underscore. Rename one of them."
            )
        record[stored] = value
    return row._replace(record=record)


def _check_column_name(row: Row, name: object) -> None:
    reserved = ("_", INTERNAL_PREFIX)
    if isinstance(name, str) and name and "." not in name and not name.startswith(reserved):
        return
    raise InputError(
        f"{row.path}: a column name must not begin with '_' or '{INTERNAL_PREFIX}', nor that of "
        f"texts or keys contain a dot; got {name!r}. Rename the column."
    )


def _common_kind(first: Kind | None, second: Kind | None, *, typed: bool) -> Kind | None:
    """Return the type of a column that holds values of both."""
    if first is None or second is None or first == second:
        return first or second
    if {first, second} == {"int", "float"}:
        return "float"
    return "json" if typed else "text"


def check_columns(summary: RowSummary, kinds: Mapping[str, Kind]) -> None:
    """Reject rows with columns that the index lacks, or of another type."""
    for name, kind in summary.kinds.items():
        check_name("column", name, kinds)
        expected = kinds[name]
        if kind in (None, expected) or expected in ("json", "text"):
            continue
        if (kind, expected) != ("int", "float"):
            raise InputError(
                f"Column {name!r} of the index holds values of type {expected}; got {kind}. "
                "Correct the cells, or build the index again."
            )


def row_schema(kinds: Mapping[str, Kind], dimension: int) -> pa.Schema:
    """Return the schema of the table of rows: the user's columns, then ours."""
    columns = [(name, _ARROW_TYPES[kind]) for name, kind in kinds.items()]
    return pa.schema([*columns, (KEY, pa.string()), *vector_schema(dimension)])


def vector_schema(dimension: int) -> pa.Schema:
    """Return the schema of a table of vectors under a condition."""
    return pa.schema([(NUMBER, pa.int64()), (VECTOR, pa.list_(pa.float16(), dimension))])


def vector_table(numbers: IntArray, vectors: FloatArray) -> pa.Table:
    """Build a table of row numbers, ``(n,)``, and vectors, ``(n, d)``, stored in float16."""
    dimension = vectors.shape[1]
    flat = pa.array(vectors.astype(np.float16).ravel())
    columns = [pa.array(numbers), pa.FixedSizeListArray.from_arrays(flat, dimension)]
    return pa.Table.from_arrays(columns, schema=vector_schema(dimension))


def row_table(
    rows: Sequence[Row],
    kinds: Mapping[str, Kind],
    keys: Sequence[str],
    numbers: IntArray,
    vectors: FloatArray,
) -> pa.Table:
    """Build a table of rows with their keys, numbers and vectors."""
    columns = {}
    for name, kind in kinds.items():
        columns[name] = pa.array(
            [_arrow_value(row, name, kind) for row in rows], _ARROW_TYPES[kind]
        )
    internal = vector_table(numbers, vectors)
    columns[KEY] = pa.array(keys, pa.string())
    columns |= {NUMBER: internal[NUMBER], VECTOR: internal[VECTOR]}
    return pa.table(columns, schema=row_schema(kinds, vectors.shape[1]))


def _arrow_value(row: Row, name: str, kind: Kind) -> object:
    value = row.cells.get(name, row.record.get(name))
    if value is None or (value == "" and kind != "text"):
        return None
    match kind:
        case "text" if isinstance(value, str):
            return value
        case "json" | "text":
            return json.dumps(value, ensure_ascii=False, default=str)
        case "bool":
            return value
        case "int":
            return int(str(value))
        case _:
            return float(str(value))


def user_columns(record: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, object]:
    """Return the user's columns of a stored row."""
    columns: dict[str, object] = {}
    for name, kind in kinds.items():
        value = record[name]
        columns[name] = json.loads(value) if kind == "json" and value else value
    return columns
