"""Which columns a data file has, to tell what kind of data is in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from condsim.errors import InputError, require
from condsim.tasks.delimited import csv_records, tsv_records
from condsim.tasks.files import suffix_of
from condsim.tasks.lines import decoded_lines, open_bytes

__all__ = ["column_names"]


def column_names(path: Path) -> tuple[str, ...]:
    """Tells the columns of a data file; nothing but its start is read.

    Args:
        path: A file as `condsim.tasks.iter_rows` reads it; ``.txt`` is taken for tab separated.

    Returns:
        The names in the order of the file (of JSONL: of its first row); none where they cannot be
        told, be it that there is no such file: whoever reads the rows says what is wrong.

    Raises:
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    try:
        if not path.is_file():  # a pipe can be read only once
            return ()
        if suffix_of(path) == ".parquet":
            return _parquet_names(path)
        names_of = _NAMES.get(suffix_of(path))
        if names_of is None:
            return ()
        with open_bytes(path) as stream:
            return names_of(path, decoded_lines(path, stream))
    except (InputError, OSError, ValueError):
        return ()


def _parquet_names(path: Path) -> tuple[str, ...]:
    parquet = require("pyarrow.parquet", extra="parquet")
    return tuple(parquet.read_schema(path).names)


def _csv_names(path: Path, lines: Iterator[str]) -> tuple[str, ...]:
    _, header = next(csv_records(path, lines), (1, []))
    return tuple(name.strip() for name in header)


def _tsv_names(path: Path, lines: Iterator[str]) -> tuple[str, ...]:
    _, header = next(tsv_records(path, lines), (1, []))
    return tuple(name.strip() for name in header)


def _json_names(_path: Path, lines: Iterator[str]) -> tuple[str, ...]:
    record = json.loads(next((line for line in lines if line.strip()), "{}"))
    return tuple(record) if isinstance(record, dict) else ()


_NAMES: dict[str, Callable[[Path, Iterator[str]], tuple[str, ...]]] = {
    ".csv": _csv_names,
    ".tsv": _tsv_names,
    ".txt": _tsv_names,
    ".jsonl": _json_names,
    ".ndjson": _json_names,
}
