"""Data files, written as a whole: they appear under their names only when they are complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from condsim.data.formats import find_writer
from condsim.data.row import Record
from condsim.data.writers import RowWriter, TsvWriter
from condsim.io import replacing


def is_table(output: Path, *, any_rows: bool = True) -> bool:
    """Detect whether a file to write is a table of texts, in which all rows share columns.

    With ``any_rows``, Parquet is rejected, as it is written only from Parquet.
    """
    return find_writer(output, any_rows=any_rows).flat


@contextmanager
def open_writer(output: Path | TextIO) -> Iterator[RowWriter]:
    """Open a file to write rows to; it appears under its name only when it is complete.

    Args:
        output: A file of a format of `condsim.data.formats`, Parquet if the rows come from
            Parquet; or an open text stream such as standard output, written as TSV.
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

    Args:
        columns: Header of a table without records.
    """
    with open_writer(path) as writer:
        writer.write(records)
        if columns and not writer.rows:
            writer.write_header(columns)
    return writer.rows
