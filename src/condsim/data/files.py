"""Data files, read as a stream of rows or of batches.

Every command reads and writes rows in the same way::

    with open_writer(output) as writer:
        for batch in read_batches(path, columns=("sentence1", "sentence2", "condition")):
            batch["score"] = scorer.score(batch.texts("sentence1"), ...)
            writer.write(batch)
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from condsim.data.batch import ROWS_PER_BATCH, Batch, Item
from condsim.data.formats import find_reader, readable_suffixes
from condsim.data.readers import Reader
from condsim.data.row import ColumnSelection, Row
from condsim.data.text import DETECTED, FileFormat, PeekedStream, file_lines, open_bytes
from condsim.errors import InputError
from condsim.paths import suffix_of

STANDARD_INPUT = Path("standard input")

_STANDARD_INPUT_HINT = "A command reads standard input where the file is -."


class DataFile:
    """A data file that is opened once, for the names of its columns and then for its rows.

    The file is closed after its last row, or with this object; rows can be read again.
    """

    def __init__(self, source: Path | str | BinaryIO, file_format: FileFormat = DETECTED) -> None:
        """Reject a wrong path or suffix; all other faults are found while rows are read."""
        self._format = file_format
        self._reader: Reader | None = None
        if isinstance(source, Path | str):
            self.path = Path(source)
            self._suffix = _checked_suffix(self.path)
        else:
            stream = PeekedStream(STANDARD_INPUT, source, file_format)
            self.path, self._suffix = STANDARD_INPUT, ""
            self._reader = find_reader(stream, self._suffix)

    def names(self) -> tuple[str, ...]:
        """Read the names of the columns, or the keys of the first JSON objects, without spaces.

        There are none if the file cannot be read: reading its rows gives the error.
        """
        try:
            return self._open().names()
        except (InputError, OSError, ValueError):
            if self._suffix:
                self._close()
            return ()

    def rows(
        self, columns: Sequence[str], *, optional: Sequence[str] = (), whole_record: bool = False
    ) -> Iterator[Row]:
        """Stream the rows; see `iter_rows`."""
        selection = ColumnSelection(tuple(columns), tuple(optional), whole_record)
        yield from never_empty(self.path, self._open().rows(selection))
        self._close()

    def batches(self, columns: Sequence[str], *, size: int = ROWS_PER_BATCH) -> Iterator[Batch]:
        """Stream the rows with all their columns in batches; see `read_batches`."""
        selection = ColumnSelection(tuple(columns), whole_record=True)
        yield from never_empty(self.path, self._open().batches(selection, size))
        self._close()

    def _open(self) -> Reader:
        if self._reader is None:
            stream = PeekedStream(self.path, open_bytes(self.path), self._format)
            # Rows that nobody reads to their end leave the file open.
            weakref.finalize(self, stream.close)
            self._reader = find_reader(stream, self._suffix)
        return self._reader

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.stream.close()
            self._reader = None


def read_batches(
    source: Path | str | BinaryIO,
    *,
    columns: Sequence[str],
    size: int = ROWS_PER_BATCH,
    file_format: FileFormat = DETECTED,
) -> Iterator[Batch]:
    """Stream a data file in batches of rows that can be written again with all their columns.

    An open binary stream such as standard input is CSV or TSV, or JSON if its first character is
    ``{`` or ``[``. See `iter_rows` for the rest.
    """
    return DataFile(source, file_format).batches(columns, size=size)


def iter_rows(
    path: Path | str,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    whole_record: bool = False,
    file_format: FileFormat = DETECTED,
) -> Iterator[Row]:
    """Stream the rows of a data file in bounded memory.

    The call reports a wrong path or suffix, the iteration all else.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.json`` file, perhaps packed as
            ``.gz``, ``.bz2``, ``.xz`` or ``.zip``; a ``.txt`` with a text on each line, or with
            cells between tabs; or a ``.parquet`` or ``.xlsx`` file. The separator, the quote and
            the encoding of a table are detected from its first lines, and logged if they differ
            from its suffix.
        columns: Columns that the file must have; of JSON, one of the first rows. A row of JSON that
            lacks a column has None there.
        optional: Columns that are read if present, and are None otherwise.
        whole_record: Whether to keep all columns of the file, as `Row.record`.
        file_format: What is known of a text table, instead of what its first lines tell.
    """
    file = DataFile(path, file_format)
    return file.rows(columns, optional=optional, whole_record=whole_record)


def never_empty(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    """Pass rows or batches on; reject a file without any."""
    first = next(items, None)
    if first is None:
        raise InputError(f"{path}: has no rows, only a header or blank lines.")
    yield first
    yield from items


def column_names(path: Path, file_format: FileFormat = DETECTED) -> tuple[str, ...]:
    """Read the names of the columns of a file whose rows are read elsewhere; see `DataFile.names`.

    A pipe has none, since it can be read only once.
    """
    try:
        return DataFile(path, file_format).names() if path.is_file() else ()
    except (InputError, OSError, ValueError):
        return ()


def text_lines(path: Path) -> Iterator[str]:
    """Stream the lines of a text file, perhaps packed, with their ends (LF or CRLF)."""
    check_file(path)
    return file_lines(path)


def check_file(path: Path) -> None:
    """Reject a path that is not a file or is empty, and a pipe, which can be read only once."""
    if not stat.S_ISREG(_status(path).st_mode):
        raise InputError(f"{path}: is not a regular file, and is read twice. Save it as a file.")


def _checked_suffix(path: Path) -> str:
    """Check that a file of rows can be read; return its format as a suffix."""
    status = _status(path)
    suffix, suffixes = suffix_of(path), readable_suffixes()
    if suffix not in suffixes:
        pipe = "" if stat.S_ISREG(status.st_mode) else f" {_STANDARD_INPUT_HINT}"
        raise InputError(
            f"{path}: the suffix decides the format and must be one of {', '.join(suffixes)}, got "
            f"{suffix!r}.{pipe}"
        )
    return suffix


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        fault = f"cannot be read ({getattr(error, 'strerror', None) or error})."
        if isinstance(error, FileNotFoundError):
            fault = "no such file." + (f" {_STANDARD_INPUT_HINT}" if str(path) == "-" else "")
        raise InputError(f"{path}: {fault}") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a folder, not a file.")
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise InputError(f"{path}: is empty (0 bytes); at least one row is needed.")
    return status
