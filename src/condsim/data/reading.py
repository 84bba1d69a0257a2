"""Reads the rows of any data file, and tells its columns and its format."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from condsim.data.formats import TEXT_ROWS, decoded_lines, file_lines, parquet_rows, text_names
from condsim.data.row import Row, Wanted
from condsim.errors import InputError, require

_NEED_ROWS = "At least one row of data is needed."
_STANDARD_INPUT = "only 'condsim score --file -' reads standard input"


def iter_rows(
    path: Path | str,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    others: bool = False,
    txt_as_tsv: bool = False,
) -> Iterator[Row]:
    """Streams the rows of a data file in bounded memory.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.parquet`` file; all but the last
            may be gzipped.
        columns: Columns that the file must have.
        optional: Columns that are read where the file has them and are None where it has not.
        others: Whether the rows also keep all other columns, as `Row.record`.
        txt_as_tsv: Whether ``.txt`` is read as ``.tsv``.

    Raises:
        InputError: If the file cannot be read, has no rows, lacks a column or breaks a rule of its
            format, at the first such place. The call itself reports a wrong path or suffix, the
            iteration all else.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"The 'path' must be a path. Got {type(path).__name__} instead.")
    path = Path(path)
    status = _status(path)
    suffix = suffix_of(path)
    suffix = ".tsv" if txt_as_tsv and suffix == ".txt" else suffix
    if suffix not in (*TEXT_ROWS, ".parquet"):
        also = "" if stat.S_ISREG(status.st_mode) else f"; {_STANDARD_INPUT}"
        raise InputError(
            f"{path}: the suffix decides the format and must be one of "
            f"{', '.join(TEXT_ROWS)}, .parquet. Got {suffix!r} instead; rename or convert the "
            f"file{also}."
        )
    _check_size(path, status)
    wanted = Wanted(tuple(columns), tuple(optional), others)
    if suffix == ".parquet":
        return never_empty(path, parquet_rows(path, wanted))
    return never_empty(path, TEXT_ROWS[suffix](path, file_lines(path), wanted))


def iter_stream(
    stream: BinaryIO, *, name: str, columns: Sequence[str], others: bool = False
) -> tuple[str, Iterator[Row]]:
    """Streams the rows of an open stream, which is read once.

    Args:
        stream: TSV, or JSONL if its first character is ``{``.
        name: What messages call it.
        columns: See `iter_rows`.
        others: See `iter_rows`.

    Returns:
        The format, ``.tsv`` or ``.jsonl``, and an iterator over the rows.

    Raises:
        InputError: See `iter_rows`.
    """
    path = Path(name)
    lines = decoded_lines(path, stream)
    start: list[str] = []
    for line in lines:
        start.append(line)
        if line.strip():
            break
    suffix = ".jsonl" if start and start[-1].lstrip().startswith("{") else ".tsv"
    rows = TEXT_ROWS[suffix](path, chain(start, lines), Wanted(tuple(columns), (), others))
    return suffix, never_empty(path, rows)


def suffix_of(path: Path) -> str:
    """Detects the format of a file from its name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and suffixes[-2] != ".parquet":
        return suffixes[-2]
    return path.suffix.lower()


def stem_of(path: Path) -> str:
    """Names the data of a file: its name without the suffix, or without both of ``.csv.gz``."""
    return path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem


def text_lines(path: Path) -> Iterator[str]:
    """Streams the lines of a text file, perhaps gzipped, with their ends (LF or CRLF).

    Raises:
        InputError: If there is no such file, or it is empty or no UTF-8. The call itself reports
            a wrong path, the iteration all else.
    """
    check_file(path)
    return file_lines(path)


def check_file(path: Path) -> None:
    """Refuses a path that is no file or an empty one, and a pipe, which can be read only once."""
    status = _status(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is no regular file, and is read twice. Save it as a file first.")
    _check_size(path, status)


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except FileNotFoundError:
        also = f"; {_STANDARD_INPUT}" if str(path) == "-" else ""
        raise InputError(f"{path}: no such file{also}. Check the name and the folder.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}).") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a folder, not a file. Give the name of a file in it.")
    return status


def _check_size(path: Path, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise InputError(f"{path}: is empty (0 bytes). {_NEED_ROWS}")


def never_empty(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """Passes rows on; refuses a file that has none."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: has no rows, only a header or blank lines. {_NEED_ROWS}")
    yield first
    yield from rows


def column_names(path: Path) -> tuple[str, ...]:
    """Reads the column names at the start of a data file.

    Args:
        path: A file as `iter_rows` reads it; ``.txt`` is taken for tab separated.

    Returns:
        The names in the order of the file (of JSONL: of its first row). None where the file has no
        columns or cannot be read: reading its rows gives the error.

    Raises:
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    try:
        if not path.is_file():  # a pipe can be read only once
            return ()
        suffix = suffix_of(path)
        if suffix == ".parquet":
            schema = require("pyarrow.parquet", extra="parquet").read_schema(path)
            return tuple(schema.names)
        return text_names(path, suffix)
    except (InputError, OSError, ValueError, RecursionError):
        return ()
