"""The rows of an index: read twice, first for the kind of each column, then as Arrow batches."""

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

from condsim.data.reading import check_file, iter_rows, suffix_of
from condsim.data.row import Row
from condsim.errors import InputError, unknown_name
from condsim.io import sha256_of
from condsim.types import FloatArray, IntArray

Kind = Literal["bool", "float", "int", "json", "text"]
"""What a column holds; ``json`` is any mixture of values, kept as JSON text."""

Given = Path | str | Sequence[Mapping[str, object]]
"""A data file, or rows in memory."""

OWN = "condsim_"
"""How the names of our own columns begin."""
KEY, NUMBER, VECTOR = (f"{OWN}{name}" for name in ("key", "number", "vector"))
BATCH = 4096  # rows encoded and committed at once: what bounds the memory, and is lost by a kill

_TYPES = {
    "bool": pa.bool_(),
    "float": pa.float64(),
    "int": pa.int64(),
    "json": pa.string(),
    "text": pa.string(),
}
_INT = re.compile(r"-?(0|[1-9]\d*)")  # what begins with 0 is a code, not a number
_FLOAT = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,2})?")
_INTS = range(-(2**63), 2**63)
_DIGITS = 20  # of the longest of them, with its sign


@dataclass(frozen=True)
class Surveyed:
    """What a first reading found."""

    kinds: Mapping[str, Kind | None]  # the kind of each column; None where all its cells are empty
    rows: int  # number of rows
    digest: str  # stands for the content


class Source:
    """Rows to be indexed, of a file or in memory; columns of the text and the key, if any."""

    def __init__(self, given: Given, text: str, key: str | None) -> None:
        """Refuses what cannot be read twice."""
        self.given = Path(given) if isinstance(given, str) else given
        self.text = text
        self.key = key
        self._typed = True
        if isinstance(self.given, Path):
            check_file(self.given)
            self._typed = suffix_of(self.given) not in (".csv", ".tsv")
        elif isinstance(self.given, Iterator):
            raise InputError("The rows are read twice; give a list, not an iterator.")

    def __iter__(self) -> Iterator[Row]:
        """Streams the rows."""
        wanted = (self.text,) if self.key is None else (self.text, self.key)
        if isinstance(self.given, Path):
            yield from iter_rows(self.given, columns=wanted, others=True)
            return
        for number, record in enumerate(self.given, start=1):
            if not isinstance(record, Mapping):
                raise InputError(f"rows, row {number}: must be a mapping. Got {record!r} instead.")
            plain: dict[str, Any] = {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in record.items()
            }
            cells = {name: plain.get(name) for name in wanted}
            yield Row(Path("rows"), number, None, cells, plain)

    def batches(self, *, after: int = 0) -> Iterator[list[Row]]:
        """Gives the rows in batches, without the first ones, so many."""
        rows = islice(self, after, None)
        while batch := list(islice(rows, BATCH)):
            yield batch

    def survey(self) -> Surveyed:
        """Reads all rows once and checks their texts, keys and names of columns."""
        kinds: dict[str, Kind | None] = {}
        keys: list[int] = []
        rows = 0
        hashed = hashlib.sha256()
        for row in self:
            rows += 1
            if not row.text(self.text).strip():
                raise InputError(f"{row.place(self.text)}: must have text. Remove the row.")
            if self.key is not None:
                keys.append(digest_of(key_of(row, self.key)))
            for name, value in row.record.items():
                if name not in kinds:
                    _check_name(row, name)
                kinds[name] = _joined(kinds.get(name), self._kind(value), typed=self._typed)
            if not isinstance(self.given, Path):
                hashed.update(json.dumps(row.record, default=str).encode())
        if not rows:
            raise InputError("At least one row is needed to index; got none.")
        kinds[self.text] = "text"
        self._check_keys(np.array(keys, np.int64))
        digest = sha256_of(self.given) if isinstance(self.given, Path) else hashed.hexdigest()
        return Surveyed(kinds, rows, digest)

    def _kind(self, value: object) -> Kind | None:
        if value is None or value == "":
            return None
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, int):
            return "int" if value in _INTS else "json"
        if isinstance(value, float):
            return "float"
        if not isinstance(value, str):
            return "json"
        if self._typed:
            return "text"
        if _INT.fullmatch(value):
            return "int" if len(value) <= _DIGITS and int(value) in _INTS else "text"
        return "float" if _FLOAT.fullmatch(value) else "text"

    def _check_keys(self, digests: IntArray) -> None:
        """Refuses a key that occurs twice; names its second row."""
        if self.key is None or len(np.unique(digests)) == len(digests):
            return
        seen: set[int] = set()
        for row in self:
            key = key_of(row, self.key)
            if digest_of(key) in seen:
                raise InputError(
                    f"{row.place(self.key)}: each key must occur once. Got {key!r} again; give "
                    "another --key, or remove the row."
                )
            seen.add(digest_of(key))


def key_of(row: Row, column: str) -> str:
    """The key of a row as text; raises `InputError` if it is empty."""
    value = row.cells[column]
    return str(value) if isinstance(value, int | float) else row.text(column)


def digest_of(key: str) -> int:
    """64 bits that stand for a key, so that millions of them fit in memory."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _check_name(row: Row, name: object) -> None:
    if isinstance(name, str) and name and "." not in name and not name.startswith((OWN, "_")):
        return
    raise InputError(
        f"{row.path}: a column name must be text without a dot and not begin with '_' or '{OWN}'. "
        f"Got {name!r}; rename the column."
    )


def _joined(one: Kind | None, two: Kind | None, *, typed: bool) -> Kind | None:
    """The kind of a column that holds both."""
    if one is None or two is None or one == two:
        return one or two
    if {one, two} == {"int", "float"}:
        return "float"
    return "json" if typed else "text"


def check_columns(found: Surveyed, kinds: Mapping[str, Kind]) -> None:
    """Refuses rows with columns that an index lacks, or of a kind that does not fit."""
    for name, kind in found.kinds.items():
        if name not in kinds:
            raise unknown_name("column", name, kinds)
        wanted = kinds[name]
        if (
            kind in (None, wanted)
            or wanted in ("json", "text")
            or (kind, wanted) == ("int", "float")
        ):
            continue
        raise InputError(
            f"Column {name!r} must hold values of kind {wanted}, as in the index. Got {kind}; "
            "correct the cells, or build the index anew."
        )


def schema_of(kinds: Mapping[str, Kind], dimension: int) -> pa.Schema:
    """The columns of the table of rows: the user's, and ours."""
    return pa.schema(
        [(name, _TYPES[kind]) for name, kind in kinds.items()]
        + [(KEY, pa.string()), *vector_schema(dimension)]
    )


def vector_schema(dimension: int) -> pa.Schema:
    """The columns of a table of vectors under a condition."""
    return pa.schema([(NUMBER, pa.int64()), (VECTOR, pa.list_(pa.float16(), dimension))])


def vector_table(numbers: IntArray, vectors: FloatArray) -> pa.Table:
    """Numbers of rows, ``(n,)``, and their vectors, ``(n, d)``, kept in float16."""
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
    """Rows with their keys, numbers and vectors, as the table of rows holds them."""
    columns = {
        name: pa.array([_cell(row, name, kind) for row in rows], _TYPES[kind])
        for name, kind in kinds.items()
    }
    ours = vector_table(numbers, vectors)
    columns |= {KEY: pa.array(keys, pa.string()), NUMBER: ours[NUMBER], VECTOR: ours[VECTOR]}
    return pa.table(columns, schema=schema_of(kinds, vectors.shape[1]))


def _cell(row: Row, name: str, kind: Kind) -> object:
    value = row.cells.get(name, row.record.get(name))
    if value is None or (value == "" and kind != "text"):
        return None
    if kind == "text" and isinstance(value, str):
        return value
    if kind in ("json", "text"):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value if kind == "bool" else (int if kind == "int" else float)(str(value))


def read_record(record: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, object]:
    """The user's columns of a stored row."""
    return {
        name: json.loads(record[name]) if kind == "json" and record[name] else record[name]
        for name, kind in kinds.items()
    }
