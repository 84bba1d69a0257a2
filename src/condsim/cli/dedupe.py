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
# Columns that --groups adds.
_OURS = ("group", "row", "kept", "score")


class _File:
    """A file whose rows are read several times; the first time, all of them are checked."""

    def __init__(self, path: Path, column: str, *, newest: str | None, tables: bool) -> None:
        self.path, self.column, self._tables = path, column, tables
        # The newest row has the highest age; ragged rows differ in their columns.
        self.ages, self.ragged = array("d"), False
        kinds: dict[str, str] = {}
        columns: set[str] | None = None
        read = (column,) if newest in (None, column) else (column, newest)
        for row in iter_rows(path, columns=read, others=True):
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
        """Yield all columns of each row."""
        for row in iter_rows(self.path, columns=(self.column,), others=True):
            yield kept_record(row, table=self._tables, beside=beside)


def _age(row: Row, column: str, kinds: dict[str, str]) -> float:
    """Return a date or number as a number, higher if newer; an empty cell is the oldest."""
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


def _groups(records: Iterable[Record], duplicates: Duplicates) -> Iterator[Record]:
    """Yield rows that have duplicates, group by group, the kept row first, by a spool file."""
    sizes = duplicates.sizes
    rows = np.flatnonzero(sizes[duplicates.kept_row] > 1)
    with tempfile.TemporaryFile("w+b") as spool:
        starts = array("q")
        numbers = iter(rows.tolist())
        due = next(numbers, -1)
        for number, record in enumerate(records):
            if number == due:
                starts.append(spool.tell())
                spool.write(json.dumps(record).encode() + b"\n")
                due = next(numbers, -1)
        kept = duplicates.kept_row[rows]
        order = np.lexsort((rows, rows != kept, kept))
        group = 0
        for index in order.tolist():
            row = int(rows[index])
            first = bool(duplicates.kept_row[row] == row)
            group += first
            score = float(str(duplicates.score[row]))
            ours = dict(zip(_OURS, (group, row + 1, first, score), strict=True))
            spool.seek(starts[index])
            yield ours | json.loads(spool.readline())


def dedupe(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet file.")],
    condition: Annotated[
        list[str],
        typer.Option(help="What duplicates have in common: 'the request'; repeat for several."),
    ],
    output: Annotated[Path, typer.Option(help="File to write: .csv, .tsv or .jsonl.")],
    at_least: Annotated[
        list[float] | None,
        typer.Option(help="Score of duplicates; repeat to give one for each condition."),
    ] = None,
    and_overall: Annotated[
        float | None,
        typer.Option(help="Score without a condition that duplicates must reach as well."),
    ] = None,
    chain: Annotated[
        bool, typer.Option("--chain", help="Put the duplicate of a duplicate in the group as well.")
    ] = False,
    to: Annotated[
        int | None, typer.Option(help="Number of rows to keep, instead of a threshold.", min=1)
    ] = None,
    groups: Annotated[Path | None, typer.Option(help="File for the groups of duplicates.")] = None,
    review: Annotated[
        Path | None,
        typer.Option(help="File for pairs of kept rows that a person should decide."),
    ] = None,
    review_from: Annotated[
        float | None, typer.Option(help="Lowest score of the pairs for --review.")
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
    """Write a file without its duplicates under one or more conditions.

    A row is a duplicate of a kept row if their scores are high enough under every condition. One
    row of each group is kept with all its columns; the input is not changed, and --groups shows
    what was left out, and for which row. Files can have any size: texts stay on disk, and so do
    their vectors, in the folder of the output.

    **Examples**

    `condsim dedupe tickets.csv --condition "the request" --at-least 0.9 --output kept.csv`

    `condsim dedupe tickets.csv --condition "the request" --condition "the product"
    --at-least 0.9 --keep newest:date --output kept.csv --groups groups.csv`

    `condsim dedupe tickets.csv --condition "the request" --at-least 0.9 --output kept.csv
    --review band.csv --review-from 0.7`
    """
    for library in ("faiss", "scipy"):
        require(library, extra="search")
    newest = keep.removeprefix(_NEWEST) if keep.startswith(_NEWEST) else None
    if not newest and keep not in ("first", "longest"):
        raise InputError(f"--keep must be first, longest or newest:COLUMN; got {keep!r}.")
    if (at_least is None) == (to is None):
        raise InputError("Give either --at-least, the score of duplicates, or --to, rows to keep.")
    if (review is None) != (review_from is None):
        raise InputError("--review, a file, and --review-from, a score, go together.")
    check_outputs(output=output, groups=groups, review=review)
    check_column(file, column)
    outputs = (output, groups, review)
    tables = [path is not None and is_table(path) for path in outputs]
    with long_work(log=None, resume="Nothing was written.") as progress:
        texts = _File(file, column, newest=newest, tables=any(tables))
        duplicates = find_duplicates(
            texts,
            load_scorer(model),
            condition,
            at_least=at_least,
            overall=and_overall,
            keep=texts.ages if newest else "longest" if keep == "longest" else "first",
            chain=chain,
            to=to,
            review_from=review_from,
            folder=output.parent,
            progress=progress,
        )
    kept = (record for record, stays in zip(texts.records(), duplicates.kept, strict=True) if stays)
    aligned = [table and texts.ragged for table in tables]
    write_records(output, aligned_records(kept, last=()) if aligned[0] else kept)
    if groups is not None:
        rows = _groups(texts.records(beside=_OURS), duplicates)
        write_records(groups, aligned_records(rows, last=()) if aligned[1] else rows)
    if review is not None:
        write_records(review, _review_records(texts, duplicates))
    _show(duplicates, output, None if at_least is None else at_least[0])


def _review_records(texts: Iterable[str], duplicates: Duplicates) -> Iterator[Record]:
    """Yield the pairs for a person to decide, with both texts and an empty column to fill in."""
    numbers = {row for pair in duplicates.review for row in pair[:2]}
    text_of = {row: text for row, text in enumerate(texts) if row in numbers}
    for row, other_row, score in duplicates.review:
        yield {
            "row1": other_row + 1,
            "row2": row + 1,
            "score": round(score, 4),
            "text1": text_of[other_row],
            "text2": text_of[row],
            "duplicate": "",
        }


def _show(duplicates: Duplicates, output: Path, threshold: float | None) -> None:
    sizes = duplicates.sizes
    rows, kept, groups = len(sizes), (sizes > 0).sum(), (sizes > 1).sum()
    largest = f", the largest of {sizes.max():,} rows" if kept < rows else ""
    score = "the threshold" if threshold is None else f"a score of {threshold:g}"
    typer.echo(
        f"{output}: {kept:,} of {rows:,} rows kept; groups of duplicates: {groups:,}"
        f"{largest} ({score} is a cosine of {duplicates.cosine:.4f})",
        err=True,
    )
