"""Former names of `condsim.data.files`, until every package imports from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from condsim.data import files
from condsim.data.files import check_file, column_names, stem_of, suffix_of, text_lines
from condsim.data.formats import ROW_READERS, ColumnSelection, stream_lines
from condsim.data.row import Row

__all__ = [
    "check_file",
    "column_names",
    "iter_rows",
    "iter_stream",
    "stem_of",
    "suffix_of",
    "text_lines",
]


def iter_rows(
    path: Path | str,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    others: bool = False,
    txt_as_tsv: bool = False,
) -> Iterator[Row]:
    """Stream rows; see `condsim.data.files.iter_rows`."""
    return files.iter_rows(
        path, columns=columns, optional=optional, whole_record=others, txt_as_tsv=txt_as_tsv
    )


def iter_stream(
    stream: BinaryIO, *, name: str, columns: Sequence[str], others: bool = False
) -> tuple[str, Iterator[Row]]:
    """Stream the rows of standard input; see `condsim.data.files.read_batches`."""
    suffix, lines = stream_lines(stream)
    path = Path(name)
    rows = ROW_READERS[suffix](path, lines, ColumnSelection(tuple(columns), (), others))
    return suffix, files.never_empty(path, rows)
