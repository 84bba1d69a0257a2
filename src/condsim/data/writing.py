"""Former ways to write records, until every command writes with `condsim.data.files`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from condsim.data.files import Batch, is_table, open_writer, write_records
from condsim.data.row import Record, Row, unique_names

__all__ = ["aligned_records", "is_table", "kept_record", "write_records", "write_tsv"]


def kept_record(row: Row, *, table: bool, beside: Sequence[str] = ()) -> dict[str, object]:
    """Return the columns of a row, to be written with further ones."""
    if table:
        Batch([row]).check_flat()
    names = unique_names([*beside, *row.record])[len(beside) :]
    return dict(zip(names, row.record.values(), strict=True))


def aligned_records(records: Iterable[Record], *, last: Sequence[str]) -> Iterator[Record]:
    """Give every record the columns of all."""
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


def write_tsv(stream: TextIO, records: Iterable[Record]) -> int:
    """Write rows as TSV; return their number."""
    with open_writer(stream) as writer:
        writer.write(records)
    return writer.rows
