"""Writes records, whatever their columns, in the format that the suffix of the file names."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from condsim.data.row import Row, unique_names
from condsim.errors import InputError
from condsim.io import replacing

Record = Mapping[str, object]


def is_table(output: Path) -> bool:
    """Detects whether a file to write is a table, in which all rows have the same columns.

    Returns:
        True for ``.csv`` and ``.tsv``, False for ``.jsonl`` and ``.ndjson``.

    Raises:
        InputError: If it has another suffix.
    """
    suffix = output.suffix.lower()
    if suffix not in _WRITERS:
        raise InputError(
            f"{output}: the suffix decides the format and must be one of "
            f"{', '.join(_WRITERS)}. Got {output.suffix!r} instead."
        )
    return suffix in (".csv", ".tsv")


def kept_record(row: Row, *, table: bool, beside: Sequence[str] = ()) -> dict[str, object]:
    """Gives the columns of a row, to be written with further ones.

    Args:
        row: A row read with ``others=True``.
        table: Whether it is for a table, whose cells hold no lists.
        beside: Columns that are written with them; a column of such a name gets another: ``score``
            becomes ``score.1``.

    Raises:
        InputError: If a cell of a table is a list or an object; names file, row and column.
    """
    for name, value in row.record.items() if table else ():
        if isinstance(value, list | dict):
            raise InputError(
                f"{row.place(name)}: a list or an object cannot be written as CSV or TSV. "
                "Give an --output that ends in .jsonl, or remove the column."
            )
    names = unique_names([*beside, *row.record])[len(beside) :]
    return dict(zip(names, row.record.values(), strict=True))


def aligned_records(records: Iterable[Record], *, last: Sequence[str]) -> Iterator[Record]:
    """Gives every record the columns of all, by way of a temporary file.

    Args:
        records: JSON objects, which may differ in their keys.
        last: Columns that all of them have and that come last.

    Yields:
        The records in the same order; what one lacks is None.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
        names: dict[str, None] = {}
        for record in records:
            names |= dict.fromkeys(record)
            spool.write(json.dumps(record) + "\n")
        spool.seek(0)
        order = [*(name for name in names if name not in last), *last]
        for line in spool:
            record = json.loads(line)
            yield {name: record.get(name) for name in order}


def write_records(path: Path, records: Iterable[Record]) -> int:
    """Writes records to a file, which appears only when it is complete.

    Args:
        path: The file; see `is_table`. Records of a table must have the same keys.

    Returns:
        Their number.

    Raises:
        InputError: If the suffix is unknown, or the file cannot be written there.
    """
    is_table(path)
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        return _WRITERS[path.suffix.lower()](stream, records)


def write_tsv(stream: TextIO, records: Iterable[Record]) -> int:
    """Writes rows with no quoting; a tab or line end within a text becomes a space.

    Args:
        records: The records, which have the same keys.

    Returns:
        Their number.
    """
    count = 0
    for count, record in enumerate(records, start=1):
        if count == 1:
            stream.write("\t".join(" ".join(name.split()) for name in record) + "\n")
        cells = (" ".join(_cell(value).split()) for value in record.values())
        stream.write("\t".join(cells) + "\n")
    return count


def _write_csv(stream: TextIO, records: Iterable[Record]) -> int:
    writer = csv.writer(stream, lineterminator="\n")
    count = 0
    for count, record in enumerate(records, start=1):
        if count == 1:
            writer.writerow(record)
        writer.writerow(map(_cell, record.values()))
    return count


def _write_jsonl(stream: TextIO, records: Iterable[Record]) -> int:
    count = 0
    for record in records:
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


def _cell(value: object) -> str:
    """A value as CSV and TSV hold it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


_WRITERS: dict[str, Callable[[TextIO, Iterable[Record]], int]] = {
    ".csv": _write_csv,
    ".tsv": write_tsv,
    ".jsonl": _write_jsonl,
    ".ndjson": _write_jsonl,
}
