"""``condsim dedupe``: a file without its duplicates under a condition."""

from __future__ import annotations

import datetime
import json
import math
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.options import Model, check_column
from condsim.cli.running import check_outputs, long_work
from condsim.data.reading import iter_rows
from condsim.data.row import Row
from condsim.data.writing import aligned_records, is_table, kept_record, write_records
from condsim.errors import InputError, require
from condsim.loading import load_scorer
from condsim.search.dedupe import Duplicates, find_duplicates

Record = dict[str, object]

_NEWEST = "newest:"
_OURS = ("group", "row", "kept", "score")  # columns of --groups


class _File:
    """A file whose rows are read again and again; the first time, every fault is found."""

    def __init__(self, path: Path, column: str, *, newest: str | None, tables: bool) -> None:
        self.path, self.column, self._tables = path, column, tables
        # By the highest age the newest row is kept; ragged rows differ in their columns.
        self.ages, self.ragged = array("d"), False
        kinds: dict[str, str] = {}
        columns: set[str] | None = None
        wanted = (column,) if newest in (None, column) else (column, newest)
        for row in iter_rows(path, columns=wanted, others=True):
            row.text(column)
            kept_record(row, table=tables)
            columns = columns or set(row.record)
            self.ragged |= columns != set(row.record)
            if newest is not None:
                self.ages.append(_age(row, newest, kinds))

    def __iter__(self) -> Iterator[str]:
        for row in iter_rows(self.path, columns=(self.column,)):
            yield row.text(self.column)

    def records(self, *, beside: Sequence[str] = ()) -> Iterator[Record]:
        """All columns of each row."""
        for row in iter_rows(self.path, columns=(self.column,), others=True):
            yield kept_record(row, table=self._tables, beside=beside)


def _age(row: Row, column: str, kinds: dict[str, str]) -> float:
    """A date or number as a number, higher if newer; an empty cell is the oldest."""
    value = row.cells[column]
    if value is None or value == "":
        return -math.inf
    try:
        kind, age = "a number", float(value)
    except (ValueError, OverflowError):
        try:
            date = datetime.datetime.fromisoformat(str(value))
        except ValueError:
            age = math.nan
        else:
            zone = date.tzinfo or datetime.UTC
            kind, age = "a date", date.replace(tzinfo=zone).timestamp()
    if not math.isfinite(age):
        raise InputError(
            f"{row.place(column)}: must be a number or a date such as 2026-11-22, got {value!r}. "
            "Correct it, or empty the cell: an empty one is the oldest."
        )
    first = kinds.setdefault("first", kind)
    if kind != first:
        raise InputError(
            f"{row.place(column)}: is {kind}, while rows before have {first}, got {value!r}. Write "
            "them in one way."
        )
    return age


def _groups(records: Iterable[Record], found: Duplicates) -> Iterator[Record]:
    """Rows that have duplicates, group by group, the kept one first, by way of a spool file."""
    sizes = found.sizes
    rows = np.flatnonzero(sizes[found.kept_row] > 1)
    with tempfile.TemporaryFile("w+b") as spool:
        starts = array("q")
        wanted = iter(rows.tolist())
        due = next(wanted, -1)
        for number, record in enumerate(records):
            if number == due:
                starts.append(spool.tell())
                spool.write(json.dumps(record).encode() + b"\n")
                due = next(wanted, -1)
        kept = found.kept_row[rows]
        order = np.lexsort((rows, rows != kept, kept))
        group = 0
        for place in order.tolist():
            row = int(rows[place])
            first = bool(found.kept_row[row] == row)
            group += first
            score = float(str(found.score[row]))
            ours = dict(zip(_OURS, (group, row + 1, first, score), strict=True))
            spool.seek(starts[place])
            yield ours | json.loads(spool.readline())


def dedupe(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet file.")],
    condition: Annotated[str, typer.Option(help="What duplicates have in common: 'the request'.")],
    at_least: Annotated[float, typer.Option(help="Score from which two texts are the same.")],
    output: Annotated[Path, typer.Option(help="File to write: .csv, .tsv or .jsonl.")],
    keep_if_differs: Annotated[
        list[str] | None,
        typer.Option(
            help="A condition under which duplicates must be the same too; may be repeated."
        ),
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="File for the groups of duplicates, beside each other.")
    ] = None,
    column: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    keep: Annotated[
        str,
        typer.Option(
            help="Which row of a group is kept: first, longest, or newest:COLUMN, the latest date "
            "or highest number."
        ),
    ] = "first",
    model: Model = None,
) -> None:
    """Write a file without its duplicates under a condition.

    Two texts are duplicates if their score is high enough under the condition, and under each
    --keep-if-differs. One row of each group is kept with all its columns; the input stays as it is,
    and --groups shows what was left out, and for which row. Files can have any size: texts stay on
    disk, and so do their vectors, in the folder of the output.

    **Examples**

    `condsim dedupe tickets.csv --condition "the request" --at-least 0.9 --output kept.csv`

    `condsim dedupe tickets.csv --condition "the request" --keep-if-differs "the product"
    --at-least 0.9 --keep newest:date --output kept.csv --groups groups.csv`
    """
    for library in ("faiss", "scipy"):
        require(library, extra="search")
    newest = keep.removeprefix(_NEWEST) if keep.startswith(_NEWEST) else None
    if not newest and keep not in ("first", "longest"):
        raise InputError(f"--keep must be first, longest or newest:COLUMN. Got {keep!r} instead.")
    check_outputs(output=output, groups=groups)
    check_column(file, column)
    tables = [is_table(path) for path in (output, groups) if path is not None]
    with long_work(log=None, resume="Nothing was written.") as progress:
        texts = _File(file, column, newest=newest, tables=any(tables))
        found = find_duplicates(
            texts,
            load_scorer(model),
            condition,
            at_least=at_least,
            keep_if_differs=keep_if_differs or (),
            keep=texts.ages if newest else "longest" if keep == "longest" else "first",
            folder=output.parent,
            progress=progress,
        )
    kept = (record for record, one in zip(texts.records(), found.kept, strict=True) if one)
    aligned = [table and texts.ragged for table in tables]
    write_records(output, aligned_records(kept, last=()) if aligned[0] else kept)
    if groups is not None:
        rows = _groups(texts.records(beside=_OURS), found)
        write_records(groups, aligned_records(rows, last=()) if aligned[1] else rows)
    _show(found, output, at_least)


def _show(found: Duplicates, output: Path, at_least: float) -> None:
    sizes = found.sizes
    rows, kept, groups = len(sizes), (sizes > 0).sum(), (sizes > 1).sum()
    largest = f", the largest of {sizes.max():,} rows" if kept < rows else ""
    typer.echo(
        f"{output}: {kept:,} of {rows:,} rows kept; groups of duplicates: {groups:,}"
        f"{largest} (a score of {at_least:g} is a cosine of {found.cosine:.4f})",
        err=True,
    )
