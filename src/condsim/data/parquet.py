"""Reader of Parquet, with pyarrow, and batches that keep the types of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from condsim.data.batch import Batch
from condsim.data.readers import Reader
from condsim.data.row import (
    MAX_CELL_CHARACTERS,
    ColumnSelection,
    Row,
    long_cell_error,
    match_columns,
    match_header,
    typed_row,
    unique_names,
)
from condsim.errors import InputError, require

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_ROWS_READ_AT_ONCE = 1024


class ParquetReader(Reader):
    """Reader of a Parquet file."""

    def names(self) -> tuple[str, ...]:
        """Read the names in the schema."""
        with open_parquet(self.path) as file:
            return tuple(map(str.strip, file.schema_arrow.names))

    def rows(self, selection: ColumnSelection) -> Iterator[Row]:
        """Stream the rows."""
        for number, table in parquet_tables(self.path, selection, _ROWS_READ_AT_ONCE):
            yield from arrow_rows(self.path, number, table, selection)

    def batches(self, selection: ColumnSelection, size: int) -> Iterator[Batch]:
        """Stream the rows in batches that keep their types."""
        # The records stay in the Arrow table, which keeps their types.
        cells_only = selection._replace(whole_record=False)
        for number, table in parquet_tables(self.path, selection, size):
            yield ArrowBatch(list(arrow_rows(self.path, number, table, cells_only)), table)


class ArrowBatch(Batch):
    """Rows of Parquet, whose records are in an Arrow table."""

    def __init__(self, rows: Sequence[Row], table: pa.RecordBatch) -> None:
        super().__init__(rows)
        self._table = table

    def take(self, indices: Sequence[int] | NDArray[np.integer[Any]]) -> Batch:
        """Return some rows, by their indices in the batch, without added columns."""
        table = self._table.take(_arrow().array(indices))
        return ArrowBatch([self.rows[index] for index in indices], table)

    def to_arrow(self) -> pa.Table:
        """Return the rows of a Parquet file, with their types, and the added columns."""
        table = _arrow().Table.from_batches([self._table])
        names = unique_names([*self.added, *table.column_names])
        table = table.rename_columns(names[len(self.added) :])
        for name, values in self.added.items():
            table = table.append_column(name, _arrow().array(values, from_pandas=True))
        return table

    @cached_property
    def full_rows(self) -> Sequence[Row]:
        """The rows with all their columns."""
        if not self.rows:
            return self.rows
        records = arrow_records(self.rows[0].path, self._table)
        return [row._replace(record=record) for row, record in zip(self.rows, records, strict=True)]


def _arrow() -> ModuleType:
    return require("pyarrow", extra="parquet")


@contextmanager
def open_parquet(path: Path, *, dictionaries: Sequence[str] = ()) -> Iterator[Any]:
    """Open a Parquet file; every error of Arrow is one line."""
    parquet = require("pyarrow.parquet", extra="parquet")
    try:
        with parquet.ParquetFile(path, pre_buffer=False, read_dictionary=dictionaries) as file:
            yield file
    except (_arrow().ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: not a complete Parquet file ({reason}).") from None


def parquet_tables(
    path: Path, selection: ColumnSelection, size: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Stream a Parquet file in tables, each with the number of its first row."""
    types = _arrow().types
    with open_parquet(path) as file:
        schema = file.schema_arrow
    names = list(schema.names)
    columns = match_header(f"{path}, header", names, selection.required, selection.optional)
    chosen = None if selection.whole_record else list(columns.values())
    texts = [
        field.name
        for field in schema
        if types.is_string(field.type) or types.is_large_string(field.type)
    ]
    number = 1
    # A text that the file stores once can stand in all its rows: it is checked before it is copied.
    with open_parquet(path, dictionaries=texts) as file:
        for table in file.iter_batches(batch_size=size, columns=chosen):
            yield number, _checked_texts(path, table, schema)
            number += len(table)


def _checked_texts(path: Path, table: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Reject texts past the limit of a cell; give the columns the types of the file."""
    arrow, compute = _arrow(), require("pyarrow.compute", extra="parquet")
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if arrow.types.is_dictionary(field.type):
            own = field.with_type(schema.field(schema.names.index(field.name)).type)
            longest = compute.max(compute.utf8_length(column.dictionary)).as_py() or 0
            if longest > MAX_CELL_CHARACTERS:
                raise long_cell_error(f"{path}, column {field.name!r}", longest)
            if not arrow.types.is_dictionary(own.type):
                field, column = own, column.dictionary_decode().cast(own.type)
        columns.append(column)
        fields.append(field)
    own_schema = arrow.schema(fields, table.schema.metadata)
    return arrow.RecordBatch.from_arrays(columns, schema=own_schema)


def arrow_rows(
    path: Path, first_number: int, table: pa.RecordBatch, selection: ColumnSelection
) -> Iterator[Row]:
    """Convert an Arrow table to rows."""
    if not selection.whole_record:
        columns = match_columns(table.schema.names, selection.names)
        table = table.select(list(dict.fromkeys(columns.values())))
    for number, record in enumerate(arrow_records(path, table), start=first_number):
        yield typed_row(Row(path, number, None, {}), record, selection)


def arrow_records(path: Path, table: pa.RecordBatch) -> list[dict[str, Any]]:
    """Convert an Arrow table to records; dates, times and decimals become text."""
    try:
        records = table.rename_columns(unique_names(table.schema.names)).to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: text is not valid UTF-8 ({error.reason}).") from None
    for record in records:
        for name, value in record.items():
            if isinstance(value, bytes):
                raise InputError(f"{path}, column {name!r}: must be text or a number, got bytes.")
            if type(value).__module__ in ("datetime", "decimal"):
                record[name] = str(value)
    return cast(list[dict[str, Any]], records)
