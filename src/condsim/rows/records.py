"""Rows in files, each with a manifest of what it was made from.

The fields of a row are the columns of its file, in order. Next to ``rows.parquet`` is
``rows.manifest.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from condsim import __version__
from condsim.console import Progress
from condsim.data.batch import ROWS_PER_BATCH, in_blocks
from condsim.data.formats import write_records
from condsim.errors import require
from condsim.io import replacing, write_json
from condsim.paths import check_suffix, sha256_of

_ROWS_PER_GROUP = 10_000


@dataclass(frozen=True, slots=True)
class TableRow:
    """Base of rows that have a separate file."""


T = TypeVar("T")
RowT = TypeVar("RowT", bound=TableRow)


def columns_of(kind: type[TableRow]) -> tuple[str, ...]:
    """Return the columns of a file of such rows."""
    return tuple(field.name for field in fields(kind))


def counted(
    rows: Iterable[T], progress: Progress, *, stage: str = "rows", total: int = 0
) -> Iterator[T]:
    """Pass rows on and report their number."""
    for number, row in enumerate(rows, start=1):
        yield row
        if number % ROWS_PER_BATCH == 0 or number == total:
            progress(stage, number, total)


def column_types(kind: type[TableRow]) -> dict[str, type[str] | type[float] | type[int]]:
    """Return the type of each column; a Literal is a text."""
    types: dict[str, type[str] | type[float] | type[int]] = {}
    for name, hint in get_type_hints(kind).items():
        choices = (hint, *get_args(hint))
        types[name] = float if float in choices else int if int in choices else str
    return types


def write_rows(rows: Iterable[RowT], path: Path, *, kind: type[RowT]) -> int:
    """Write rows to a ``.parquet`` or ``.csv`` file in one step; return their number."""
    if check_suffix(path, (".parquet", ".csv")) == ".csv":
        names = columns_of(kind)
        cells = attrgetter(*names)
        records = (dict(zip(names, cells(row), strict=True)) for row in rows)
        return write_records(path, records, columns=names)
    with replacing(path) as partial:
        return _write_parquet(rows, partial, kind)


def parquet_schema(kind: type[TableRow]) -> Any:  # noqa: ANN401
    """Return the Parquet columns of a type of rows."""
    arrow = require("pyarrow", extra="build")
    arrow_types = {str: arrow.string(), float: arrow.float32(), int: arrow.int32()}
    return arrow.schema([(name, arrow_types[t]) for name, t in column_types(kind).items()])


def _write_parquet(rows: Iterable[TableRow], path: Path, kind: type[TableRow]) -> int:
    arrow = require("pyarrow", extra="build")
    parquet = require("pyarrow.parquet", extra="build")
    schema, written = parquet_schema(kind), 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows_of_group in in_blocks(rows, _ROWS_PER_GROUP):
            records = list(map(asdict, rows_of_group))
            writer.write_table(arrow.Table.from_pylist(records, schema=schema))
            written += len(records)
    return written


def manifest_of(path: Path) -> Path:
    """Return the path of a file's manifest: ``pairs.manifest.json`` for ``pairs.parquet``."""
    return path.with_name(f"{path.stem}.manifest.json")


def revisions_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the first 12 characters of the SHA-256 of each file, by its name."""
    # Files of one name, such as ``train.csv``, have their folders in the key.
    all_paths = list(paths)
    names = [path.name for path in all_paths]
    return {
        str(path) if names.count(path.name) > 1 else path.name: sha256_of(path)[:12]
        for path in all_paths
    }


def write_provenance(
    output: Path, *, kind: str, made_from: Sequence[Path], facts: Mapping[str, object]
) -> None:
    """Write the manifest of a finished file, with its sources and the version of condsim."""
    hashes = {"sha256": sha256_of(output), "made_from": revisions_of(made_from)}
    content = {"kind": kind, **hashes, **facts, "condsim": __version__}
    write_json(content, manifest_of(output))
