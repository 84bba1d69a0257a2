"""Which columns a data file has, to tell what kind of data is in it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from condsim.errors import InputError, require
from condsim.tasks.rows.formats import (
    csv_records,
    csv_rows,
    decoded_lines,
    json_rows,
    open_bytes,
    parquet_rows,
    tsv_records,
    tsv_rows,
)
from condsim.tasks.rows.row import Cell, Row, RowReader

_READERS: dict[str, RowReader] = {
    ".csv": csv_rows,
    ".tsv": tsv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
    ".parquet": parquet_rows,
}
_NEED_ROWS = "At least one row of data is needed."


def iter_rows(
    path: Path | str, *, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, Cell]]]:
    """Streams the rows of a data file with bounded memory.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.parquet`` file; all but the last
            may be gzipped.
        columns: Columns that the file must have. Any further columns of the file are ignored.
        optional: Columns that are read where the file has them and are None where it has not.

    Returns:
        Iterator over (row number from 1, cell of each column).

    Raises:
        InputError: If the file cannot be read or breaks a rule of its format, at the first such
            place; a wrong path or suffix is reported by the call, all else while iterating.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    return ((row.number, row.cells) for row in scan_rows(path, columns=columns, optional=optional))


def scan_rows(
    path: Path | str,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    txt_as_tsv: bool = False,
) -> Iterator[Row]:
    """Same as `iter_rows`, with the physical line of each row for the messages of the caller.

    Args:
        path: See `iter_rows`.
        columns: See `iter_rows`.
        optional: See `iter_rows`.
        txt_as_tsv: Whether ``.txt`` is read as ``.tsv``, for what is released so.

    Returns:
        Iterator over the rows.

    Raises:
        InputError: See `iter_rows`.
        MissingExtraError: See `iter_rows`.
    """
    path = Path(path)
    status = _status(path)
    suffix = suffix_of(path)
    reader = _READERS.get(".tsv" if txt_as_tsv and suffix == ".txt" else suffix)
    if reader is None:
        raise InputError(
            f"{path}: the format is told from the suffix, which must be one of "
            f"{', '.join(_READERS)}. Got {suffix!r} instead; rename or convert the file."
        )
    _check_size(path, status)
    return _never_empty(path, reader(path, tuple(columns), tuple(optional)))


def suffix_of(path: Path) -> str:
    """Tells the format of a file from its name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and suffixes[-2] != ".parquet":
        return suffixes[-2]
    return path.suffix.lower()


def stem_of(path: Path) -> str:
    """Names the data of a file.

    Args:
        path: The file.

    Returns:
        Its name without the suffix, that of ``pairs.csv.gz`` without both.
    """
    return path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem


def check_file(path: Path) -> None:
    """Refuses a path that no rows can be read from, whatever their format.

    Args:
        path: The file.

    Raises:
        InputError: If there is no such file, or it is a folder, empty or cannot be looked at.
    """
    _check_size(path, _status(path))


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file. Check the name and the folder.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)}).") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a folder, not a file. Give the name of a file in it.")
    return status


def _check_size(path: Path, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise InputError(f"{path}: is empty (0 bytes). {_NEED_ROWS}")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _never_empty(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: has no rows, only a header or blank lines. {_NEED_ROWS}")
    yield first
    yield from rows


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
