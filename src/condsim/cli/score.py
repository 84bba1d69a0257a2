"""``condsim score``: one pair, or a file of them."""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from condsim.errors import InputError
from condsim.files import check_not_input, replacing
from condsim.loading import load_scorer
from condsim.tasks import iter_csts, iter_rows

if TYPE_CHECKING:
    from rich.console import Console

    from condsim.tasks import Cell

ROWS = 4096  # scored and written at once: what bounds the memory
SHOWN = 200  # rows of a table; more than that is no reading for the eye

Scale = Literal["unit", "likert", "raw"]
Record = dict[str, "Cell"]

_COLUMNS = ("sentence1", "sentence2", "condition")
_BAR = 20  # characters


def score_to_file(file: Path, output: Path, *, model: str | None, scale: Scale) -> None:
    """Scores a file into another, with the columns of the first and ``score``.

    Args:
        file: The file to read, ``-`` for standard input.
        output: The file to write; its suffix says the format.
        model: See `condsim.loading.load_scorer`.
        scale: The scale of the scores.

    Raises:
        InputError: If the input breaks a rule, the suffix is unknown or both are the same file.
        ModelError: If the model cannot be loaded.
    """
    write = _WRITERS.get(output.suffix.lower())
    if write is None:
        raise InputError(
            f"{output}: the format is told from the suffix, which must be one of "
            f"{', '.join(_WRITERS)}. Got {output.suffix!r} instead."
        )
    check_not_input(output, file, option="--output")
    with replacing(output) as partial, _readable(file) as path:
        with partial.open("w", encoding="utf-8", newline="") as stream:
            rows = write(stream, _scored(path, model=model, scale=scale))
    typer.echo(f"{output}: {rows} rows scored", err=True)


def score_to_stdout(file: Path, *, model: str | None, scale: Scale) -> None:
    """Scores a file to standard output as tab separated rows.

    Args:
        file: The file to read, ``-`` for standard input.
        model: See `condsim.loading.load_scorer`.
        scale: The scale of the scores.

    Raises:
        InputError: If the input breaks a rule.
        ModelError: If the model cannot be loaded.
    """
    with _readable(file) as path:
        _write_tsv(sys.stdout, _scored(path, model=model, scale=scale))


def show_table(file: Path, *, model: str | None, scale: Scale) -> None:
    """Prints each sentence pair once, and below it its conditions with their scores as bars.

    Args:
        file: The file to read, ``-`` for standard input.
        model: See `condsim.loading.load_scorer`.
        scale: The scale of the scores.

    Raises:
        InputError: If the input breaks a rule.
        ModelError: If the model cannot be loaded.
    """
    from rich.console import Console

    with _readable(file) as path:
        rows = list(islice(_scored(path, model=model, scale=scale, block=SHOWN + 1), SHOWN + 1))
    console = Console(highlight=False)
    shown = rows[:SHOWN]
    width = min(40, max(len(str(row["condition"])) for row in shown))
    for pair, group in groupby(shown, key=lambda row: (row["sentence1"], row["sentence2"])):
        _print_pair(console, pair, list(group), scale=scale, width=width)
    if len(rows) > SHOWN:
        typer.echo(f"These are the first {SHOWN} rows; --output FILE writes all of them.", err=True)


def _print_pair(
    console: Console,
    pair: tuple[Cell, Cell],
    rows: Sequence[Record],
    *,
    scale: Scale,
    width: int,
) -> None:
    from rich.table import Table
    from rich.text import Text

    low, high = {"unit": (0.0, 1.0), "likert": (1.0, 5.0), "raw": (-1.0, 1.0)}[scale]
    block = "#" if console.options.ascii_only else "█"
    for sentence in pair:
        console.print(Text(str(sentence), style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=2)
    grid.add_column(width=width)
    grid.add_column(justify="right", width=5)
    grid.add_column(width=_BAR, no_wrap=True)
    for row in rows:
        value = float(row["score"] or 0)
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        style = "green" if share >= 0.5 else "red"
        bar = Text(block * max(1, round(_BAR * share)), style=style)
        grid.add_row("", Text(str(row["condition"])), f"{value:.2f}", bar)
    console.print(grid)
    console.print()


def _scored(path: Path, *, model: str | None, scale: Scale, block: int = ROWS) -> Iterator[Record]:
    """Yields the rows of a file with their scores; the model is loaded when the first is read."""
    rows = _records(path)
    first = next(rows)
    scorer = load_scorer(model)
    pending = [first, *islice(rows, block - 1)]
    while pending:
        columns = ([str(row[name]) for row in pending] for name in _COLUMNS)
        sentences1, sentences2, conditions = columns
        scores = scorer.score(sentences1, sentences2, conditions, scale=scale)
        for row, value in zip(pending, scores, strict=True):
            # str of a float32 is the shortest text that reads back the same.
            yield {**row, "score": float(str(value))}
        pending = list(islice(rows, block))


def _records(path: Path) -> Iterator[Record]:
    """Yields the checked rows with all their columns, in the order of the file's first row."""
    order = _columns_of(path)
    others = [name for name in order if name not in (*_COLUMNS, "score")]
    checked: Iterator[Record] = (
        {"sentence1": row.sentence1, "sentence2": row.sentence2, "condition": row.condition}
        for row in iter_csts(path, labels=False)
    )
    if not others:
        yield from checked
        return
    rest = iter_rows(path, columns=(), optional=others)
    for row, (_, more) in zip(checked, rest, strict=True):
        cells = {**row, **more}
        yield {name: cells[name] for name in dict.fromkeys((*order, *_COLUMNS)) if name in cells}


def _columns_of(path: Path) -> list[str]:
    """The columns a file announces in its first line; none if that cannot be told.

    Faults are left to the reader of the rows, which names them.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            if path.suffix.lower() in (".jsonl", ".ndjson"):
                first = json.loads(stream.readline())
                return [
                    name
                    for name, value in first.items()
                    if isinstance(value, str | int | float) and not isinstance(value, bool)
                ]
            if path.suffix.lower() == ".csv":
                return [name.strip() for name in next(csv.reader(stream))]
            if path.suffix.lower() == ".tsv":
                return [name.strip() for name in stream.readline().rstrip("\r\n").split("\t")]
    except (OSError, ValueError, AttributeError, StopIteration, csv.Error):
        pass
    return []


@contextmanager
def _readable(file: Path) -> Iterator[Path]:
    """Gives the file itself, or standard input as a file on disk (it is read more than once)."""
    if str(file) != "-":
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="condsim-") as folder:
        source = sys.stdin.buffer
        start = source.readline()
        is_json = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
        path = Path(folder, "stdin.jsonl" if is_json else "stdin.tsv")
        with path.open("wb") as target:
            target.write(start)
            shutil.copyfileobj(source, target)
        yield path


def _write_csv(stream: TextIO, rows: Iterator[Record]) -> int:
    first = next(rows)
    writer = csv.DictWriter(stream, list(first), lineterminator="\n")
    writer.writeheader()
    writer.writerow(first)
    count = 1
    for row in rows:
        writer.writerow(row)
        count += 1
    return count


def _write_tsv(stream: TextIO, rows: Iterator[Record]) -> int:
    """Writes rows with no quoting; a tab or line end within a text becomes a space."""
    count = 0
    for row in rows:
        if not count:
            stream.write("\t".join(row) + "\n")
        cells = ("" if cell is None else " ".join(str(cell).split()) for cell in row.values())
        stream.write("\t".join(cells) + "\n")
        count += 1
    return count


def _write_jsonl(stream: TextIO, rows: Iterator[Record]) -> int:
    count = 0
    for row in rows:
        stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        count += 1
    return count


_WRITERS: dict[str, Callable[[TextIO, Iterator[Record]], int]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": _write_jsonl,
    ".ndjson": _write_jsonl,
}


class ScaleOption(StrEnum):
    """The scale that scores are given on."""

    UNIT = "unit"
    LIKERT = "likert"
    RAW = "raw"


def score(
    sentence1: Annotated[str | None, typer.Argument(show_default=False)] = None,
    sentence2: Annotated[str | None, typer.Argument(show_default=False)] = None,
    condition: Annotated[str | None, typer.Argument(show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File to score: CSV, TSV or JSONL with sentence1, sentence2, condition; "
            "- reads TSV or JSONL from standard input.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: .csv, .tsv or .jsonl.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or Hub name.", show_default="the model that ships"),
    ] = None,
    scale: Annotated[
        ScaleOption,
        typer.Option(
            help="unit: from 0 to 1, 0.5 is the middle. likert: from 1 to 5. raw: the cosine."
        ),
    ] = ScaleOption.UNIT,
    table: Annotated[
        bool | None,
        typer.Option(
            "--table/--no-table",
            help="Table for the eye, or tab separated rows.",
            show_default="a table on a terminal",
        ),
    ] = None,
) -> None:
    """Say how similar two sentences are with respect to a condition.

    A file of any size is read, scored and written a few thousand rows at a time; its own columns
    are kept and `score` is added. The output file appears only when it is whole.

    **Examples**

    `condsim score "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim score --file pairs.csv`

    `condsim score --file pairs.csv --output scored.csv --scale likert`

    `cat pairs.tsv | condsim score --file - > scored.tsv`
    """
    if file is None:
        if sentence1 is None or sentence2 is None or condition is None:
            raise InputError(
                "Give two sentences and a condition, or --file. The condition says in which "
                "respect to compare, such as 'the sport'."
            )
        if output is not None or table is not None:
            raise InputError("--output and --table go with --file.")
        _score_one(sentence1, sentence2, condition, model=model, scale=scale)
        return
    if sentence1 is not None:
        raise InputError("Give either two sentences and a condition, or --file, not both.")
    if output is not None and table is not None:
        raise InputError("Give either --output or --table/--no-table, not both.")

    if output is not None:
        score_to_file(file, output, model=model, scale=scale.value)
    elif sys.stdout.isatty() if table is None else table:
        show_table(file, model=model, scale=scale.value)
    else:
        score_to_stdout(file, model=model, scale=scale.value)


def _score_one(
    sentence1: str, sentence2: str, condition: str, *, model: str | None, scale: ScaleOption
) -> None:
    """Prints the score of one pair."""
    from condsim.loading import load_scorer

    value = load_scorer(model).score(sentence1, sentence2, condition, scale=scale.value)
    typer.echo(f"{value:.3f}")
