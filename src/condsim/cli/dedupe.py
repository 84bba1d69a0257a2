"""``condsim dedupe``: a file without its duplicates under a condition."""

from __future__ import annotations

import datetime
import json
import math
import re
import tempfile
from array import array
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import numpy as np
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.options import TextFile
from condsim.cli.process import long_work, print_note
from condsim.data.files import column_names
from condsim.data.formats import READ, WRITTEN, is_table, write_records
from condsim.data.row import unique_names
from condsim.data.text import FileFormat
from condsim.errors import InputError, require
from condsim.loading import load_encoder
from condsim.model.base import COLLECTION_SHARE
from condsim.model.embedding import EmbeddingScorer
from condsim.types import KeepRule

if TYPE_CHECKING:
    from condsim.search.dedupe import Duplicates, Keep

Record = dict[str, object]

# Rules of --keep by a column, and the sign of its numbers.
_BY_COLUMN = {"newest": 1, "oldest": -1}
# With dots, the day comes first everywhere; with slashes, it depends on the country.
_DAY_FIRST = re.compile(r"^(\d\d)\.(\d\d)\.(\d{4})(?!\d)")
# Share of the removed rows from which a condition and none count as the same.
_SAME_ROWS = 0.9
_KEEP_RULES = ", ".join([*get_args(KeepRule), *(f"{rule}:COLUMN" for rule in _BY_COLUMN)])


def _preference(keep: str, texts: TextFile) -> Keep:
    """Return which row of a group is kept, by the option --keep."""
    rule, colon, column = keep.partition(":")
    if colon and column and rule in _BY_COLUMN:
        return _ranks(texts, column, sign=_BY_COLUMN[rule])
    if keep not in get_args(KeepRule):
        raise InputError(
            f"--keep must be one of {_KEEP_RULES}, with the name of a column of dates or numbers; "
            f"got {keep!r}."
        )
    return cast("Keep", keep)


def _ranks(texts: TextFile, column: str, *, sign: int) -> array[float]:
    """Return a rank for each text, the preferred the highest; an empty cell is the lowest."""
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
                ages.append(sign * age)
                continue
            raise InputError(
                f"{row.location(column)}: {fault}, got {value!r}. Correct it, or empty the cell: "
                "a row without it is kept last."
            )
    return ages


def _age(value: str | float) -> tuple[str, float]:
    """Return the kind of a date or number, and its age, higher if newer; NaN for others."""
    try:
        return "a number", float(value)
    except (ValueError, OverflowError):
        pass
    try:
        date = datetime.datetime.fromisoformat(_DAY_FIRST.sub(r"\3-\2-\1", str(value)))
    except ValueError:
        return "", math.nan
    return "a date", date.replace(tzinfo=date.tzinfo or datetime.UTC).timestamp()


def _score_columns(duplicates: Duplicates) -> list[str]:
    """Return the names of the columns of scores, one for each condition."""
    if len(duplicates.scores) == 1:
        return ["score"]
    return [f"score: {name or 'as a whole'}" for name in duplicates.scores]


def _group_columns(duplicates: Duplicates) -> list[str]:
    """Return the columns that --groups adds."""
    return ["group", "row", "kept", *_score_columns(duplicates)]


def _group_records(texts: TextFile, duplicates: Duplicates) -> Iterator[Record]:
    """Yield rows that have duplicates, group by group, the kept row first, by a spool file."""
    added_columns = _group_columns(duplicates)
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
        new = unique_names([*added_columns, *names])[len(added_columns) :]
        new_names = dict(zip(names, new, strict=True))
        group = 0
        for index in np.lexsort((members, members != leaders, leaders)).tolist():
            member = int(members[index])
            is_kept = bool(duplicates.kept_row[member] == member)
            group += is_kept
            scores = [float(str(column[member])) for column in duplicates.scores.values()]
            added = (group, int(row_of[member]) + 1, is_kept, *scores)
            spool.seek(starts[index])
            record = json.loads(spool.readline())
            columns = {new: record.get(name) for name, new in new_names.items()}
            yield dict(zip(added_columns, added, strict=True)) | columns


def dedupe(
    file: Annotated[Path, Argument(help=f"File of texts: {READ}.")],
    output: Annotated[Path, Option(help=f"File to write: {WRITTEN}."), Output(".tsv")],
    condition: Annotated[
        list[str] | None, Option(help="What duplicates have in common. Repeatable.")
    ] = None,
    plain: options.Plain = False,
    at_least: Annotated[
        list[float] | None,
        Option(min=0, max=1, help="Score of duplicates. Repeatable, one for each condition."),
    ] = None,
    overall: options.Overall = COLLECTION_SHARE,
    and_overall: Annotated[
        float | None,
        Option(
            min=0, max=1, help="Score without any condition to reach as well: one more threshold."
        ),
    ] = None,
    chain: Annotated[bool, Option("--chain", help="Duplicates of duplicates count, too.")] = False,
    to: Annotated[int | None, Option(help="Number of rows to keep.", min=1)] = None,
    groups: Annotated[
        Path | None, Option(help="File for the groups of duplicates."), Output(".tsv")
    ] = None,
    review: Annotated[
        Path | None, Option(help="File for pairs that a person decides."), Output(".tsv")
    ] = None,
    review_from: Annotated[
        float | None, Option(min=0, max=1, help="Lowest score for --review.")
    ] = None,
    column: options.TextColumn = "text",
    keep: Annotated[str, Option(help=f"Row of a group to keep: {_KEEP_RULES}.")] = "first",
    model: options.Model = None,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Write a file without its duplicates under one or more conditions.

    A row is a duplicate of a kept row if their scores are high enough under every condition. One
    is rarely enough: "the request" alone merges kinds of requests. One row of each group is kept
    with all its columns; --groups shows what was left out, and for which row. Files can have any
    size: texts and vectors stay on disk.

    **Examples**

    `condsim dedupe tickets.csv --condition "the request" --condition "the product" --at-least 0.7
    --output kept.csv --groups groups.csv`

    `condsim dedupe tickets.csv --condition "the request" --condition "the product" --at-least 0.7
    --keep oldest:date --output kept.csv --review band.csv --review-from 0.5`

    `condsim dedupe tickets.csv --plain --at-least 0.8 --output kept.csv --groups groups.csv`
    """
    conditions = options.chosen_conditions(condition, plain=plain)
    _check_options(conditions or [], at_least, to, review, review_from)
    file_format = FileFormat.checked(separator, encoding)
    from condsim.search.dedupe import find_duplicates
    from condsim.search.vectors import cosine_scores

    tables = any([is_table(path) for path in (output, groups, review) if path is not None])
    with long_work(log=None, resume="Nothing was written.") as progress:
        texts = TextFile(file, column, file_format, tables=tables, strict=strict)
        scorer = load_encoder(model)
        find = partial(
            find_duplicates,
            texts,
            scorer,
            overall=overall,
            keep=_preference(keep, texts),
            chain=chain,
            to=to,
            folder=output.parent,
            progress=progress,
        )
        duplicates = find(
            conditions, at_least=at_least, and_overall=and_overall, review_from=review_from
        )
        plain_duplicates = None
        if conditions and len(duplicates.kept) <= options.COMPARED_TEXTS:
            plain_duplicates = find(None, at_least=at_least and at_least[0])
    kept_rows = texts.write(duplicates.kept, output)
    if groups is not None:
        names = unique_names([*_group_columns(duplicates), *column_names(file, file_format)])
        write_records(groups, _group_records(texts, duplicates), columns=names)
    if review is not None:
        records = _review_records(texts, duplicates)
        write_records(review, records, columns=_review_columns(duplicates))
    cosine = np.array([duplicates.cosine], np.float32)
    first = conditions[0] if conditions else None
    lowest = at_least[0] if at_least else float(cosine_scores(scorer, cosine, first)[0])
    sizes = duplicates.sizes
    largest = f", the largest of {sizes.max():,} rows" if not kept_rows.all() else ""
    print_note(
        f"{output}: {kept_rows.sum():,} of {len(kept_rows):,} rows kept; groups of duplicates: "
        f"{(sizes > 1).sum():,}{largest} (from a score of {lowest:.4g})"
    )
    _note_same_rows(conditions, duplicates, plain_duplicates)
    if conditions and len(conditions) == 1 and and_overall is None:
        _note_different_wholes(texts, duplicates, scorer, lowest)
    print_note(texts.blank.note("no group"))


def _check_options(
    conditions: Sequence[str],
    at_least: Sequence[float] | None,
    to: int | None,
    review: Path | None,
    review_from: float | None,
) -> None:
    """Reject options that do not go together."""
    for library in ("faiss", "scipy"):
        require(library, extra="search")
    if (at_least is None) == (to is None):
        raise InputError(
            "Give either --at-least, the score that duplicates reach, such as 0.7, or --to, the "
            "number of rows to keep."
        )
    if at_least and len(at_least) not in {1, len(conditions)}:
        raise InputError(
            f"Give --at-least once, or once for each --condition; got {len(at_least)} for "
            f"{len(conditions)}."
        )
    if (review is None) != (review_from is None):
        raise InputError("Give --review and --review-from together.")
    if review_from is not None and at_least and review_from >= at_least[0]:
        raise InputError(
            f"--review-from must be below --at-least, {at_least[0]:g}; got {review_from:g}."
        )


def _note_same_rows(
    conditions: Sequence[str] | None, duplicates: Duplicates, plain: Duplicates | None
) -> None:
    """Say that the conditions hardly change which rows stay."""
    if plain is None or (duplicates.kept.all() and plain.kept.all()):
        return
    both, either = ~duplicates.kept & ~plain.kept, ~duplicates.kept | ~plain.kept
    if both.sum() >= _SAME_ROWS * either.sum():
        names = " and ".join(map(repr, conditions or ()))
        print_note(f"{names} hardly changes the result: --plain removes nearly the same rows.")


def _note_different_wholes(
    texts: TextFile, duplicates: Duplicates, scorer: EmbeddingScorer, lowest: float
) -> None:
    """Warn of rows that one condition has merged although they differ as a whole."""
    removed = np.flatnonzero(~duplicates.kept)[: options.COMPARED_TEXTS]
    kept = duplicates.kept_row[removed]
    text_of = _texts_of({*removed.tolist(), *kept.tolist()}, texts)
    first = [text_of[row] for row in removed.tolist()]
    second = [text_of[row] for row in kept.tolist()]
    scores = scorer.score(first, second) if len(removed) else np.empty(0, np.float32)
    different = np.flatnonzero(scores < lowest)
    if len(different):
        worst = different[scores[different].argmin()]
        rows = np.flatnonzero(texts.present)
        print_note(
            f"{len(different):,} of {len(removed):,} removed rows reach {lowest:.4g} under the "
            f"condition but not as a whole, such as row {rows[removed[worst]] + 1} for row "
            f"{rows[kept[worst]] + 1} ({scores[worst]:.2f}). One condition may merge kinds of "
            "texts: give a second --condition, and read --groups."
        )


def _texts_of(numbers: Collection[int], texts: TextFile) -> dict[int, str]:
    """Return some of the texts by their numbers."""
    return {number: text for number, text in enumerate(texts) if number in numbers}


def _review_columns(duplicates: Duplicates) -> list[str]:
    return ["row1", "row2", *_score_columns(duplicates), "text1", "text2", "duplicate"]


def _review_records(texts: TextFile, duplicates: Duplicates) -> Iterator[Record]:
    """Yield the pairs for a person to decide, with both texts and an empty column to fill in."""
    row_of = np.flatnonzero(texts.present)
    columns = _review_columns(duplicates)
    text_of = _texts_of({row for pair in duplicates.review for row in pair[:2]}, texts)
    for pair in duplicates.review:
        row, other_row = pair.row, pair.other_row
        numbers = (int(row_of[other_row]) + 1, int(row_of[row]) + 1)
        scores = [round(score, 4) for score in pair.scores.values()]
        values = (*numbers, *scores, text_of[other_row], text_of[row], "")
        yield dict(zip(columns, values, strict=True))
