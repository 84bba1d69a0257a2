"""Rows of an index: the kind of each column, found in a first reading, and their Arrow form.

A kind never changes what a cell says: a column of texts becomes numbers only if every cell comes
back as it was written, so ``007``, ``1.10`` and ``12E4`` stay text. Dates and times are stored as
text in ISO 8601, which SQL compares with texts, dates and time stamps. A blank cell of a table, NaN
and NaT are null.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from condsim.data.batch import BlankRows
from condsim.data.files import check_file, iter_rows
from condsim.data.parquet import open_parquet
from condsim.data.row import Row, join_names, short_repr
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError
from condsim.paths import sha256_of, suffix_of
from condsim.types import FloatArray, IntArray

Kind = Literal["bool", "float", "int", "json", "number", "text"]
"""Type of a column.

``number`` holds whole numbers and fractions, and gives whole ones back without a point; ``int``
holds whole numbers above 2^53; ``json`` is any mixture of values, stored as JSON text.
"""

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
    "number": pa.float64(),
    "text": pa.string(),
}
_KIND_NAMES = {"bool": "true or false", "float": "numbers", "int": "whole numbers"}
# Plain decimal numbers; one that begins with 0, such as 007, is a code.
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_DECIMAL = re.compile(rf"{_WHOLE.pattern}(\.\d+)?")
_INT64 = range(-(2**63), 2**63)
_EXACT_IN_FLOAT = range(-(2**53), 2**53 + 1)
_MAX_INT64_DIGITS = 20
# What pandas, R and spreadsheets write for a missing number, and for true and false.
_MISSING_CELLS = frozenset({"NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"})
_TRUTH = {text: text.lower() == "true" for text in "True False true false TRUE FALSE".split()}

# What the cells of a column are, more finely than its kind.
_Form = Literal["bool", "float", "fraction", "json", "long", "missing", "text", "whole"]
_KIND_OF_FORM: dict[_Form, Kind] = {
    "bool": "bool",
    "float": "float",
    "fraction": "float",
    "json": "json",
    "long": "int",
    "missing": "text",
    "text": "text",
    "whole": "number",
}
# Kinds of columns with several forms, of texts and of typed values; all others are text or JSON.
_TEXT_MIXTURES: dict[frozenset[_Form], Kind] = {
    frozenset({"whole", "fraction"}): "number",
    frozenset({"whole", "long"}): "int",
    frozenset({"float", "fraction"}): "float",
}
_TYPED_MIXTURES: dict[frozenset[_Form], Kind] = {
    frozenset({"whole", "float"}): "float",
    frozenset({"whole", "long"}): "int",
    frozenset({"float", "long"}): "float",
    frozenset({"float", "long", "whole"}): "float",
}


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
        self._time_columns: frozenset[str] = frozenset()
        if isinstance(self.rows, Path):
            check_file(self.rows)
            suffix = suffix_of(self.rows)
            self._typed = suffix not in (".csv", ".tsv", ".txt", ".xlsx")
            if suffix == ".parquet":
                self._time_columns = _time_columns(self.rows)
        elif isinstance(self.rows, Iterator):
            raise InputError("The rows are read twice; give a list, not an iterator.")
        elif hasattr(self.rows, "columns"):
            raise InputError(
                "The rows must be a list of dicts, and a DataFrame is none; give "
                "frame.to_dict('records')."
            )

    def __iter__(self) -> Iterator[Row]:
        """Stream the rows; those without text only if they are to be rejected."""
        return self._read(BlankRows(strict=self._blank.strict))

    def _read(self, blank: BlankRows) -> Iterator[Row]:
        """Stream the rows, and count those that are left out."""
        for _, row in blank.present(self._rows(), [self.text]):
            values = {name: self._stored(row, name, row.record[name]) for name in row.record}
            yield _with_stored_names(row._replace(record=values))

    def _stored(self, row: Row, name: str, value: object) -> object:
        """Return a value as it is stored: null, text, a number, a bool, or a list or object."""
        if isinstance(value, str):
            if name in self._time_columns:
                return _iso_text(datetime.datetime.fromisoformat(value))
            return value if value or self._typed else None
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return None if math.isnan(value) else value
        if isinstance(value, datetime.date):
            # NaT is a date, and not equal to itself.
            return _iso_text(value) if value == value else None
        if type(value).__name__ == "NAType":
            return None
        if isinstance(value, list | tuple | dict):
            with suppress(TypeError, ValueError):
                json.dumps(value)
                return value
        raise InputError(
            f"{row.location(name)}: must be text, a number, true or false, a date, nothing, or a "
            f"list or dict of these; got {short_repr(value)} ({type(value).__name__})."
        )

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
            values: dict[str, Any] = {name: _python_value(record[name]) for name in record}
            cells = {name: values.get(name) for name in columns}
            if str(cells[self.text]).isspace():
                cells[self.text] = ""
            yield Row(Path("rows"), number, None, cells, values)

    def batches(self, *, skip: int = 0) -> Iterator[list[Row]]:
        """Yield the rows in batches, after the first ``skip``."""
        rows = islice(self, skip, None)
        while batch := list(islice(rows, ROWS_PER_BATCH)):
            yield batch

    def summary(self, expected: Mapping[str, Kind] | None = None) -> RowSummary:
        """Read all rows once; check texts, keys, columns and their kinds; count the left out."""
        forms: dict[str, set[_Form]] = {}
        digests: list[int] = []
        count = 0
        content = hashlib.sha256()
        for row in self._read(self._blank):
            count += 1
            row.text(self.text)
            if self.key is not None:
                digests.append(key_digest(row_key(row, self.key)))
            for name, value in row.record.items():
                if expected is not None:
                    _check_fits(row, name, value, expected)
                elif name not in forms:
                    _check_column_name(row, name)
                seen = forms.setdefault(name, set())
                if (form := self._form(value)) is not None:
                    seen.add(form)
            if not isinstance(self.rows, Path):
                content.update(json.dumps(row.record).encode())
        if not count:
            raise InputError("At least one row is needed to index; got none.")
        kinds = {name: self._kind(seen) for name, seen in forms.items()}
        kinds[stored_name(self.text)] = "text"
        self._check_keys(np.array(digests, np.int64))
        digest = sha256_of(self.rows) if isinstance(self.rows, Path) else content.hexdigest()
        return RowSummary(kinds, count, digest)

    def _form(self, value: object) -> _Form | None:
        match value:
            case None:
                return None
            case bool():
                return "bool"
            case int():
                if value in _EXACT_IN_FLOAT:
                    return "whole"
                return "long" if value in _INT64 else "json"
            case float():
                return "float"
            case str():
                return "text" if self._typed else _text_form(value)
            case _:
                return "json"

    def _kind(self, forms: set[_Form]) -> Kind | None:
        """Return the kind of a column whose cells have these forms; None if all are empty."""
        if len(forms) > 1:
            forms = forms - {"missing"}
        if len(forms) < 2:
            return _KIND_OF_FORM[next(iter(forms))] if forms else None
        if self._typed:
            return _TYPED_MIXTURES.get(frozenset(forms), "json")
        return _TEXT_MIXTURES.get(frozenset(forms), "text")

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


def stored_name(column: object) -> str:
    """Return the name of a column in an index: an underscore for each dot, none at its beginning.

    In filters a dot means a part; names that begin with an underscore are LanceDB's own.
    """
    return str(column).lstrip("_").replace(".", "_") or "column"


def _with_stored_names(row: Row) -> Row:
    if not any("." in str(name) or str(name).startswith("_") for name in row.record):
        return row
    record: dict[str, object] = {}
    for name, value in row.record.items():
        stored = stored_name(name)
        if stored in record:
            raise InputError(
                f"{row.path}: two columns would be stored as {stored!r}, since a repeated name "
                "gets a number, a dot becomes an underscore, and an underscore at the beginning "
                "is dropped. Rename one of them."
            )
        record[stored] = value
    return row._replace(record=record)


def _check_column_name(row: Row, name: object) -> None:
    if isinstance(name, str) and name and not name.startswith(INTERNAL_PREFIX):
        return
    raise InputError(
        f"{row.path}: a column name must not be empty or begin with '{INTERNAL_PREFIX}'; got "
        f"{name!r}. Rename the column."
    )


def _time_columns(path: Path) -> frozenset[str]:
    """Return the columns of a Parquet file that hold dates or time stamps."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
    is_time = [
        pa.types.is_timestamp(field.type) or pa.types.is_date(field.type) for field in schema
    ]
    return frozenset(compress(schema.names, is_time))


def _python_value(value: object) -> object:
    """Turn scalars of NumPy and pandas into Python's."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str) and type(value) is not str:
        return str(value)
    return value


def _iso_text(value: datetime.date) -> str:
    """Format a date or time in ISO 8601: midnight as a date, times with a zone in UTC."""
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC)
    # Pandas counts nanoseconds, which other formats do not hold.
    fields = (value.year, value.month, value.day, value.hour, value.minute, value.second)
    plain = datetime.datetime(*fields, value.microsecond, value.tzinfo)
    if plain.tzinfo is None and plain.time() == datetime.time():
        return plain.date().isoformat()
    return plain.isoformat(sep=" ")


def _text_form(cell: str) -> _Form:
    """Tell what a cell of a table of texts is: a number only if it comes back as written."""
    if _WHOLE.fullmatch(cell) and cell != "-0" and len(cell) <= _MAX_INT64_DIGITS:
        number = int(cell)
        if number in _EXACT_IN_FLOAT:
            return "whole"
        return "long" if number in _INT64 else "text"
    if _DECIMAL.fullmatch(cell) and repr(float(cell)) == cell:
        return "float" if cell.endswith(".0") else "fraction"
    if cell in _TRUTH:
        return "bool"
    return "missing" if cell in _MISSING_CELLS else "text"


def _is_missing(value: object) -> bool:
    return isinstance(value, str) and value in _MISSING_CELLS


def _fits(value: object, kind: Kind) -> bool:
    """Check that a column of an index can hold a value; a number of a table is a text here."""
    if kind in ("json", "text") or _is_missing(value):
        return True
    if kind == "bool" or isinstance(value, bool):
        return kind == "bool" and str(value) in _TRUTH
    if kind == "int":
        is_whole = isinstance(value, int) or _WHOLE.fullmatch(str(value))
        return bool(is_whole) and int(str(value)) in _INT64
    if not (isinstance(value, int | float) or _DECIMAL.fullmatch(str(value))):
        return False
    number = float(str(value))
    return kind == "float" or not number.is_integer() or int(number) in _EXACT_IN_FLOAT


def _check_fits(row: Row, name: str, value: object, kinds: Mapping[str, Kind]) -> None:
    """Reject a value that a column of an index cannot hold, and a column that it lacks."""
    if name not in kinds:
        raise InputError(
            f"{row.path}: the index has no column {name!r}; it has {join_names(list(kinds))}. "
            "Remove the column, or build the index again with it."
        )
    kind = kinds[name]
    if value is not None and not _fits(value, kind):
        raise InputError(
            f"{row.location(name)}: the index holds {_KIND_NAMES.get(kind, 'numbers')} in this "
            f"column; got {short_repr(value)}. Correct the cell, or build the index again."
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
    is_text = kind in ("json", "text")
    if value is None or (not is_text and (value == "" or _is_missing(value))):
        return None
    match kind:
        case "text" if isinstance(value, str):
            return value
        case "json" | "text":
            return json.dumps(value, ensure_ascii=False)
        case "bool":
            return _TRUTH.get(str(value))
        case "int":
            return int(str(value))
        case _:
            return float(str(value))


def user_columns(record: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, object]:
    """Return the user's columns of a stored row."""
    columns: dict[str, object] = {}
    for name, kind in kinds.items():
        value = record[name]
        if kind == "json" and value:
            value = json.loads(value)
        elif kind == "number" and value is not None and value.is_integer():
            value = int(value)
        columns[name] = value
    return columns
