"""``condsim dedupe``: a file without its duplicates under a condition."""

from __future__ import annotations

import datetime
import json
import math
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from typer import Argument, Option

from condsim.cli.files import Output
from condsim.cli.options import Encoding, Model, Separator, Strict, TextColumn, TextFile
from condsim.cli.process import long_work, print_note
from condsim.data.files import column_names
from condsim.data.formats import READ, WRITTEN
from condsim.data.row import unique_names
from condsim.data.text import FileFormat
from condsim.data.writing import is_table, open_writer, write_records
from condsim.errors import InputError, require
from condsim.loading import load_scorer
from condsim.model.base import COLLECTION_SHARE

if TYPE_CHECKING:
    from condsim.search.dedupe import Duplicates

Record = dict[str, object]

_NEWEST = "newest:"
# Columns that --groups adds.
_ADDED = ("group", "row", "kept", "score")
_REVIEW_COLUMNS = ("row1", "row2", "score", "text1", "text2", "duplicate")


def _ages(texts: TextFile, column: str) -> array[float]:
    """Return the age of each text, the newest the highest; an empty cell is the oldest."""
    ages = array("d")
    first_kind = ""
    for batch, rows in texts.batches(column):
        for row in batch.take(np.flatnonzero(texts.present[rows])).rows:
            value = row.cells[column]
            if value is None or value == "":
                ages.append(-math.inf)
                continue
            kind, age = _age(value)
            first_kind = first_kind or kind
            if not math.isfinite(age):
                fault = "must be a number or a date such as 2026-11-22"
            elif kind != first_kind:
                fault = f"is {kind}, while rows before have {first_kind}"
            else:
                ages.append(age)
                continue
            raise InputError(
                f"{row.location(column)}: {fault}, got {value!r}. Correct it, or empty the cell: "
                "an empty one is the oldest."
            )
    return ages


def _age(value: str | float) -> tuple[str, float]:
    """Return the kind of a date or number, and its age, higher if newer; NaN for others."""
    try:
        return "a number", float(value)
    except (ValueError, OverflowError):
        pass
    try:
        date = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        return "", math.nan
    return "a date", date.replace(tzinfo=date.tzinfo or datetime.UTC).timestamp()


def _group_records(texts: TextFile, duplicates: Duplicates) -> Iterator[Record]:
    """Yield rows that have duplicates, group by group, the kept row first, by a spool file."""
    row_of = np.flatnonzero(texts.present)
    members = np.flatnonzero(duplicates.sizes[duplicates.kept_row] > 1)
    leaders = duplicates.kept_row[members]
    numbers = set(row_of[members].tolist())
    names: dict[str, None] = {}
    with tempfile.TemporaryFile("w+b") as spool:
        starts = array("q")
        for batch, rows in texts.batches():
            for number, record in enumerate(batch.records(), start=rows.start):
                if number in numbers:
                    starts.append(spool.tell())
                    spool.write(json.dumps(record).encode() + b"\n")
                    names |= dict.fromkeys(record)
        # Columns of the file that have the name of an added one are renamed.
        new_names = dict(zip(names, unique_names([*_ADDED, *names])[len(_ADDED) :], strict=True))
        group = 0
        for index in np.lexsort((members, members != leaders, leaders)).tolist():
            member = int(members[index])
            is_kept = bool(duplicates.kept_row[member] == member)
            group += is_kept
            score = float(str(duplicates.score[member]))
            added = (group, int(row_of[member]) + 1, is_kept, score)
            spool.seek(starts[index])
            record = json.loads(spool.readline())
            columns = {new: record.get(name) for name, new in new_names.items()}
            yield dict(zip(_ADDED, added, strict=True)) | columns


def dedupe(
    file: Annotated[Path, Argument(help=f"File of texts: {READ}.")],
    condition: Annotated[list[str], Option(help="What duplicates have in common. Repeatable.")],
    output: Annotated[Path, Option(help=f"File to write: {WRITTEN}."), Output(".tsv")],
    at_least: Annotated[
        list[float] | None, Option(help="Score of duplicates. Repeatable, one for each condition.")
    ] = None,
    overall: Annotated[
        float,
        Option(
            min=0,
            max=1,
            help="Share of the similarity without a condition in the score under each one.",
        ),
    ] = COLLECTION_SHARE,
    and_overall: Annotated[
        float | None,
        Option(help="Score without any condition to reach as well: one more threshold."),
    ] = None,
    chain: Annotated[bool, Option("--chain", help="Duplicates of duplicates count, too.")] = False,
    to: Annotated[int | None, Option(help="Number of rows to keep.", min=1)] = None,
    groups: Annotated[
        Path | None, Option(help="File for the groups of duplicates."), Output(".tsv")
    ] = None,
    review: Annotated[
        Path | None, Option(help="File for pairs that a person decides."), Output(".tsv")
    ] = None,
    review_from: Annotated[float | None, Option(help="Lowest score for --review.")] = None,
    column: TextColumn = "text",
    keep: Annotated[
        str, Option(help="Row of a group to keep: first, longest, or newest:COLUMN.")
    ] = "first",
    model: Model = None,
    strict: Strict = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Write a file without its duplicates under one or more conditions.

    A row is a duplicate of a kept row if their scores are high enough under every condition. One
    row of each group is kept with all its columns; --groups shows what was left out, and for which
    row. Files can have any size: texts and vectors stay on disk.

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
    if (review is None) != (review_from is None):
        raise InputError("Give --review and --review-from together.")
    if review_from is not None and at_least and review_from >= at_least[0]:
        raise InputError(
            f"--review-from must be below --at-least, {at_least[0]:g}; got {review_from:g}."
        )
    file_format = FileFormat.checked(separator, encoding)
    from condsim.search.dedupe import find_duplicates

    tables = any([is_table(path) for path in (output, groups, review) if path is not None])
    with long_work(log=None, resume="Nothing was written.") as progress:
        texts = TextFile(file, column, file_format, tables=tables, strict=strict)
        ages = _ages(texts, newest) if newest else None
        duplicates = find_duplicates(
            texts,
            load_scorer(model),
            condition,
            at_least=at_least,
            and_overall=and_overall,
            overall=overall,
            keep=ages or ("longest" if keep == "longest" else "first"),
            chain=chain,
            to=to,
            review_from=review_from,
            folder=output.parent,
            progress=progress,
        )
    # Rows without text stay.
    kept_rows = ~texts.present
    kept_rows[texts.present] = duplicates.kept
    with open_writer(output) as writer:
        for batch, rows in texts.batches():
            writer.write(batch.take(np.flatnonzero(kept_rows[rows])))
    if groups is not None:
        names = unique_names([*_ADDED, *column_names(file, file_format)])
        write_records(groups, _group_records(texts, duplicates), columns=names)
    if review is not None:
        write_records(review, _review_records(texts, duplicates), columns=_REVIEW_COLUMNS)
    sizes = duplicates.sizes
    largest = f", the largest of {sizes.max():,} rows" if not kept_rows.all() else ""
    score = f"a score of {at_least[0]:g}" if at_least else "the threshold"
    print_note(
        f"{output}: {kept_rows.sum():,} of {len(kept_rows):,} rows kept; groups of duplicates: "
        f"{(sizes > 1).sum():,}{largest} ({score} is a cosine of {duplicates.cosine:.4f})"
    )
    print_note(texts.blank.note("no group"))


def _review_records(texts: TextFile, duplicates: Duplicates) -> Iterator[Record]:
    """Yield the pairs for a person to decide, with both texts and an empty column to fill in."""
    row_of = np.flatnonzero(texts.present)
    reviewed = {row for pair in duplicates.review for row in pair[:2]}
    text_of = {row: text for row, text in enumerate(texts) if row in reviewed}
    for row, other_row, score in duplicates.review:
        numbers = (int(row_of[other_row]) + 1, int(row_of[row]) + 1)
        values = (*numbers, round(score, 4), text_of[other_row], text_of[row], "")
        yield dict(zip(_REVIEW_COLUMNS, values, strict=True))
