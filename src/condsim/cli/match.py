"""``condsim match``: the rows of one file that are the same as rows of another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.options import TextFile
from condsim.cli.process import long_work, print_note
from condsim.data.files import iter_rows
from condsim.data.formats import READ, WRITTEN, is_table, write_records
from condsim.data.labels import read_labels
from condsim.data.row import unique_names
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.loading import load_encoder
from condsim.model.base import COLLECTION_SHARE

if TYPE_CHECKING:
    from condsim.search.match import Matches

Record = dict[str, object]

_SAME = "same"
_DEFAULT_PRECISION = 0.95


def match(
    first: Annotated[Path, Argument(help=f"File of texts: {READ}.")],
    second: Annotated[Path, Argument(help="File in which to find each of them.")],
    output: Annotated[Path, Option(help=f"File of the matches: {WRITTEN}."), Output(".tsv")],
    condition: Annotated[
        list[str] | None, Option(help="What matches have in common. Repeatable.")
    ] = None,
    plain: options.Plain = False,
    at_least: Annotated[
        float | None, Option(min=0, max=1, help="Lowest score of a match.", show_default="none")
    ] = None,
    labeled: Annotated[
        Path | None, Option(help="Matches of an earlier run, with the column same filled in.")
    ] = None,
    precision: Annotated[
        float | None,
        Option(help="Promised share of right matches.", show_default=f"{_DEFAULT_PRECISION}"),
    ] = None,
    one_to_many: Annotated[
        bool, Option("--one-to-many", help="A row of the second file may match several.")
    ] = False,
    unmatched1: Annotated[
        Path | None, Option("--unmatched1", help="Rows of the first without one."), Output(".tsv")
    ] = None,
    unmatched2: Annotated[
        Path | None, Option("--unmatched2", help="Rows of the second without one."), Output(".tsv")
    ] = None,
    column: options.TextColumn = "text",
    column2: Annotated[
        str | None,
        Option("--column2", help="Column of the texts of the second.", show_default="--column"),
    ] = None,
    overall: options.Overall = COLLECTION_SHARE,
    model: options.Model = None,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Find for each row of a file the nearest row of another, with respect to a condition.

    Writes pairs of rows, the highest score first, with all columns of both files. `gap` is how far
    the score is above the next best row of the second file. Pairs are taken by falling score, and
    each row once; with several conditions, the score is the lowest. To be sure of a precision, fill
    in the column `same` (yes or no) of some matches and give the file as --labeled. All vectors are
    in memory.

    **Examples**

    `condsim match ours.csv theirs.csv --condition "the product" --at-least 0.6 --output matches.csv
    --unmatched1 only-ours.csv`

    `condsim match ours.csv theirs.csv --condition "the product" --labeled judged.csv --precision
    0.9 --output matches.csv`
    """
    conditions = options.chosen_conditions(condition, plain=plain)
    if labeled is not None and at_least is not None:
        raise InputError("Give either --at-least, or --labeled, which chooses it.")
    if labeled is None and precision is not None:
        raise InputError("--precision needs --labeled, matches that a person has judged.")
    file_format = FileFormat.checked(separator, encoding)
    tables = any(is_table(path) for path in (output, unmatched1, unmatched2) if path is not None)
    columns = ("--column", column), ("--column2", column2 or column)
    from condsim.search.match import find_matches

    with long_work(log=None, resume="Nothing was written.") as progress:
        files = [
            TextFile(path, name, file_format, tables=tables, strict=strict, option=option)
            for path, (option, name) in zip((first, second), columns, strict=True)
        ]
        labels = None if labeled is None else _labels(labeled, files, file_format)
        matches = find_matches(
            list(files[0]),
            list(files[1]),
            load_encoder(model),
            conditions,
            at_least=at_least,
            labels=labels,
            precision=precision or _DEFAULT_PRECISION,
            one_to_many=one_to_many,
            overall=overall,
            progress=progress,
        )
    _write_matches(output, matches, files)
    unmatched = (unmatched1, matches.unmatched1), (unmatched2, matches.unmatched2)
    for file, (path, rows) in zip(files, unmatched, strict=True):
        if path is not None:
            file.write(rows, path)
    _summarize(output, matches)
    for file in files:
        print_note(file.blank.note("no match"))


def _summarize(output: Path, matches: Matches) -> None:
    number, (size1, size2) = len(matches.rows1), matches.sizes
    lowest = f", the lowest score {matches.score.min():.2f}" if number else ""
    print_note(
        f"{output}: {number:,} matches{lowest}; without one: {size1 - number:,} of {size1:,} rows "
        f"of the first file and {len(matches.unmatched2):,} of {size2:,} of the second"
    )
    found = matches.threshold
    if found is not None:
        print_note(
            f"from a score of {found.value:.4f}: precision {found.precision:.3f} [{found.low:.3f}, "
            f"{found.high:.3f}], recall {found.recall:.3f} of the {found.positives:,} right ones "
            f"among {found.rows:,} labeled matches"
        )


def _labels(
    path: Path, files: Sequence[TextFile], file_format: FileFormat
) -> dict[tuple[int, int], bool]:
    """Read which matches of an earlier run are the same, by the indices of their texts."""
    labels = read_labels(path, _SAME, file_format=file_format)
    texts = [dict(zip(np.flatnonzero(file.present).tolist(), file, strict=True)) for file in files]
    index_of = [{row: index for index, row in enumerate(side)} for side in texts]
    judged = {}
    shown = [f"{file.column}{number}" for number, file in enumerate(files, start=1)]
    rows = iter_rows(path, columns=("row1", "row2"), optional=shown, file_format=file_format)
    for number, row in enumerate(rows):
        if not labels.present[number]:
            continue
        pair = [int(str(row.cells[name])) - 1 for name in ("row1", "row2")]
        for file, side, index, name in zip(files, texts, pair, shown, strict=True):
            if index not in side or row.cells[name] not in (None, side[index]):
                raise InputError(
                    f"{row.location()}: is not a pair of {file.path}, whose row {index + 1} has "
                    "another text or none. Judge matches of the same two files."
                )
        judged[index_of[0][pair[0]], index_of[1][pair[1]]] = bool(labels.alike[number])
    return judged


def _write_matches(output: Path, matches: Matches, files: Sequence[TextFile]) -> None:
    """Write the pairs with all columns of both files, whose names end in their number."""
    records = [[r for batch, _ in file.batches() for r in batch.records()] for file in files]
    names = [list(dict.fromkeys(name for record in side for name in record)) for side in records]
    figures = {"score": matches.score}
    if len(matches.scores) > 1:
        figures |= {f"score: {name}": column for name, column in matches.scores.items()}
    figures["gap"] = matches.gap
    own = ["row1", "row2", *figures, _SAME]
    added = [f"{name}{number}" for number, side in enumerate(names, start=1) for name in side]
    columns = unique_names([*own, *added])

    def pairs() -> Iterator[Record]:
        rows = [np.flatnonzero(file.present) for file in files]
        matched = (rows[0][matches.rows1].tolist(), rows[1][matches.rows2].tolist())
        for number, pair in enumerate(zip(*matched, strict=True)):
            scores = [float(column[number]) for column in figures.values()]
            rounded = [None if math.isnan(score) else round(score, 4) for score in scores]
            cells = [
                records[side][row].get(name)
                for side, row in enumerate(pair)
                for name in names[side]
            ]
            values = (pair[0] + 1, pair[1] + 1, *rounded, "", *cells)
            yield dict(zip(columns, values, strict=True))

    write_records(output, pairs(), columns=columns)
