"""The formats of data files: the suffixes of each, what reads it and what writes it.

A file that is written appears under its name only when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from condsim.data.parquet import ParquetReader
from condsim.data.readers import CsvReader, JsonReader, LinesReader, Reader, TsvReader
from condsim.data.row import Record
from condsim.data.text import PeekedStream, log_form
from condsim.data.workbook import WorkbookReader
from condsim.data.writers import (
    CsvWriter,
    JsonWriter,
    MarkdownWriter,
    ParquetWriter,
    RowWriter,
    TsvWriter,
)
from condsim.errors import InputError
from condsim.io import replacing
from condsim.paths import PACKED, check_suffix


class Format(NamedTuple):
    """A format of data files, with its suffixes; None where it is not read or not written."""

    suffixes: tuple[str, ...]
    reader: type[Reader] | None
    writer: type[RowWriter] | None


FORMATS = (
    Format((".csv",), CsvReader, CsvWriter),
    Format((".tsv",), TsvReader, TsvWriter),
    Format((".jsonl", ".ndjson"), JsonReader, JsonWriter),
    Format((".json",), JsonReader, None),
    Format((".txt",), LinesReader, None),
    Format((".md",), None, MarkdownWriter),
    Format((".xlsx",), WorkbookReader, None),
    Format((".parquet",), ParquetReader, ParquetWriter),
)
"""Every format; messages and help texts list their suffixes in this order."""

_READERS = {suffix: entry.reader for entry in FORMATS for suffix in entry.suffixes if entry.reader}
_WRITERS = {suffix: entry.writer for entry in FORMATS for suffix in entry.suffixes if entry.writer}


def readable_suffixes() -> tuple[str, ...]:
    """List the suffixes of the files that are read."""
    return tuple(_READERS)


def writable_suffixes(*, any_rows: bool = True) -> tuple[str, ...]:
    """List the suffixes of the files that are written, with ``any_rows`` from any other file."""
    return tuple(suffix for suffix, kind in _WRITERS.items() if kind.any_rows or not any_rows)


def _listed(suffixes: Sequence[str]) -> str:
    *names, last = suffixes
    return f"{', '.join(names)} or {last}"


READ = f"{_listed(readable_suffixes())}, perhaps packed as {_listed(PACKED)}"
"""What is read, for the help of an option."""
WRITTEN = _listed(writable_suffixes())
"""What rows of any file are written as, for the help of an option."""


def find_reader(stream: PeekedStream, suffix: str) -> Reader:
    """Choose the reader of an open file by its suffix; by its content if that is empty."""
    if stream.is_zip and not suffix:
        raise InputError(f"{stream.path}: is an Excel workbook; give the name of its file.")
    kind = _READERS.get(suffix)
    if kind is None:
        is_json = stream.head_text().lstrip().startswith(("{", "["))
        kind = JsonReader if is_json else TsvReader
    if stream.is_zip and kind is not WorkbookReader:
        log_form(stream.path, "read as an Excel workbook, which it is")
        kind = WorkbookReader
    return kind(stream)


def find_writer(output: Path, *, any_rows: bool) -> type[RowWriter]:
    """Choose the writer of a file by its suffix; reject a suffix that is not written."""
    return _WRITERS[check_suffix(output, writable_suffixes(any_rows=any_rows))]


def is_table(output: Path, *, any_rows: bool = True) -> bool:
    """Detect whether a file to write is a table of texts, in which all rows share columns.

    With ``any_rows``, Parquet is rejected, as it is written only from Parquet.
    """
    return find_writer(output, any_rows=any_rows).flat


@contextmanager
def open_writer(output: Path | TextIO) -> Iterator[RowWriter]:
    """Open a file to write rows to; it appears under its name only when it is complete.

    An open text stream such as standard output is written as TSV.
    """
    if not isinstance(output, Path):
        writer: RowWriter = TsvWriter(output)
        yield writer
        writer.finish()
        return
    kind = find_writer(output, any_rows=False)
    with replacing(output) as partial, kind.open(partial, output) as writer:
        yield writer


def write_records(path: Path, records: Iterable[Record], *, columns: Sequence[str] = ()) -> int:
    """Write records to a text file, in a table all with the same keys; return their number.

    The ``columns`` are the header of a table without records.
    """
    with open_writer(path) as writer:
        writer.write(records)
        if columns and not writer.rows:
            writer.write_header(columns)
    return writer.rows
