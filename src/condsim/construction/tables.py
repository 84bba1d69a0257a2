"""Files of rows, streamed, and the manifest beside each.

Rows of any type of `condsim.construction.rows` are written as Parquet or CSV and read from those,
TSV and JSON lines. Beside ``pairs.parquet`` lies ``pairs.manifest.json``: what it was made of.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, astuple, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from condsim.construction.rows import TableRow, columns_of
from condsim.errors import InputError, require
from condsim.files import replacing, sha256_of
from condsim.progress import Progress
from condsim.tasks import Row, iter_rows, place, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

BLOCK = 4096
"""Rows of a block."""


def in_blocks(rows: Iterable[T]) -> Iterator[list[T]]:
    """Cuts rows into lists."""
    remaining = iter(rows)
    while block := list(islice(remaining, BLOCK)):
        yield block


def counted(rows: Iterable[T], total: int, progress: Progress) -> Iterator[T]:
    """Tells how many rows have come through."""
    for number, row in enumerate(rows, start=1):
        yield row
        if number % BLOCK == 0 or number == total:
            progress("rows", number, total)


def plain_values(result: DataclassInstance) -> dict[str, object]:
    """Gives a result as JSON can hold it.

    Args:
        result: A dataclass of numbers, texts, tuples, mappings and dataclasses.

    Returns:
        Its fields by name; tuples are lists and NaN is None.
    """
    return {name: _plain(value) for name, value in dataclasses.asdict(result).items()}


def _plain(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


RowT = TypeVar("RowT", bound=TableRow)

_BATCH = 10_000


def read_rows(
    path: Path | str, kind: type[RowT], *, names: Mapping[str, str] | None = None
) -> Iterator[RowT]:
    """Streams the rows of a file in bounded memory.

    Args:
        path: File with the columns of ``kind``; formats as `condsim.tasks.iter_rows` reads them.
            Columns whose field has a default may be absent.
        kind: The type of the rows.
        names: What a column is called in the file, by field, where it is not the field's name.

    Yields:
        The rows in file order.

    Raises:
        InputError: If the file cannot be read or a cell is empty or of the wrong type; names the
            file, the row and the column.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    wanted = _plain_types(kind)
    called = {field.name: (names or {}).get(field.name, field.name) for field in fields(kind)}
    optional = [field.name for field in fields(kind) if field.default is not MISSING]
    rows = iter_rows(
        path,
        columns=[called[name] for name in called if name not in optional],
        optional=[called[name] for name in optional],
    )
    for row in rows:
        values: dict[str, Any] = {}
        for field in fields(kind):
            cell = row.cells[called[field.name]]
            if cell in (None, "") and field.default is not MISSING:
                continue
            values[field.name] = _value(path, row, called[field.name], wanted[field.name])
        try:
            made = kind(**values)
        except InputError as error:
            raise InputError(f"{place(path, row=row.number, line=row.line)}: {error}") from None
        yield made


def write_rows(rows: Iterable[RowT], path: Path, *, kind: type[RowT]) -> int:
    """Writes rows to a file in one step, whatever their number in bounded memory.

    Args:
        rows: The rows.
        path: A ``.parquet`` or ``.csv`` file in a folder that exists.
        kind: The type of the rows.

    Returns:
        Number of rows written.

    Raises:
        InputError: If the suffix is another one or the file cannot be written.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    writers = {".parquet": _write_parquet, ".csv": _write_csv}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise InputError(
            f"{path}: rows are written to a file that ends in {' or '.join(writers)}. Got "
            f"{path.suffix!r}; give another name."
        )
    with replacing(path) as partial:
        return writer(iter(rows), partial, kind)


def parquet_schema(kind: type[TableRow]) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Gives the Parquet columns of a type of rows."""
    arrow = require("pyarrow", extra="build")
    known = {str: arrow.string(), float: arrow.float32(), int: arrow.int32()}
    return arrow.schema([(name, known[plain]) for name, plain in _plain_types(kind).items()])


def manifest_of(path: Path) -> Path:
    """Names the manifest of a file.

    Args:
        path: Such as ``pairs.parquet``.

    Returns:
        Such as ``pairs.manifest.json``, in the same folder.
    """
    return path.with_name(f"{path.stem}.manifest.json")


def revisions_of(paths: Iterable[Path]) -> dict[str, str]:
    """Tells files apart by their content, for a manifest.

    Args:
        paths: The files.

    Returns:
        The first 12 characters of each file's SHA-256, by its name.

    Raises:
        InputError: If a file cannot be read.
    """
    return {path.name: sha256_of(path)[:12] for path in paths}


def write_manifest(path: Path, content: Mapping[str, object]) -> None:
    """Writes the manifest of a file.

    Args:
        path: The file it belongs to.
        content: Plain values: source revisions, settings, counts.

    Raises:
        InputError: If it cannot be written.
    """
    with replacing(manifest_of(path)) as partial:
        text = json.dumps(content, indent=2, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8")


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Reads the manifest of a file.

    Args:
        path: The file it belongs to.

    Returns:
        Its content, or None if there is none.

    Raises:
        InputError: If it is damaged.
    """
    manifest = manifest_of(path)
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError("it holds no mapping")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{manifest} cannot be read ({error}). Remove it and make {path.name} again."
        ) from error
    return content


def _plain_types(kind: type[TableRow]) -> dict[str, type]:
    """The type of each column: str, float or int."""
    hints = get_type_hints(kind)
    return {name: _tables_plain(hints[name]) for name in columns_of(kind)}


def _tables_plain(hint: Any) -> type:  # noqa: ANN401  (any annotation)
    if hint in (str, float, int):
        return hint  # type: ignore[no-any-return]  # one of the three
    if get_origin(hint) is types.UnionType:
        return next(part for part in get_args(hint) if part is not type(None))  # type: ignore[no-any-return]
    return str  # Literal


def _value(path: Path, row: Row, column: str, wanted: type) -> str | float | int:
    """Turns a cell into what the field holds."""
    cell = row.cells[column]
    where = place(path, row=row.number, line=row.line, column=column)
    if cell is None or cell == "":
        raise InputError(f"{where}: must not be empty. Write the value, or remove the row.")
    if wanted is str:
        return cell if isinstance(cell, str) else str(cell)
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (wanted is int and not number.is_integer()):
        rule = "a whole number" if wanted is int else "a number"
        raise InputError(f"{where}: must be {rule}, got {shown(cell)}. Correct it.")
    return int(number) if wanted is int else number


def _write_parquet(rows: Iterator[TableRow], path: Path, kind: type[TableRow]) -> int:
    arrow = require("pyarrow", extra="build")
    parquet = require("pyarrow.parquet", extra="build")
    schema = parquet_schema(kind)
    written = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = zip(*map(astuple, batch), strict=True)
            arrays = [arrow.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            writer.write_table(arrow.table(arrays, schema=schema))
            written += len(batch)
    return written


def _write_csv(rows: Iterator[TableRow], path: Path, kind: type[TableRow]) -> int:
    written = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns_of(kind))
        for row in rows:
            writer.writerow(astuple(row))
            written += 1
    return written
