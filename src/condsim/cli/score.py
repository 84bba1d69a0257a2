"""``condsim score``: one pair, or a file of them."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import typer

from condsim.cli.options import (
    Device,
    Engine,
    Model,
    RayAddress,
    RayWorkers,
    check_engine,
    revision_of,
    whole_pair,
)
from condsim.cli.running import check_outputs, long_work
from condsim.data.reading import iter_rows, iter_stream, suffix_of
from condsim.data.row import unique_names
from condsim.data.writing import aligned_records, is_table, kept_record, write_records, write_tsv
from condsim.errors import InputError, require
from condsim.io import replacing
from condsim.loading import load_scorer

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay, Terminal
    from condsim.model.base import PairScorer

ROWS = 4096  # scored and written at once: what bounds the memory
_KEPT = 16_384  # vectors of texts that may come again in a later block
SHOWN = 200  # rows of a table; nobody reads more than that

Scale = Literal["unit", "likert", "raw"]
Record = Mapping[str, object]
_COLUMNS = ("sentence1", "sentence2", "condition")
_JSON = (".jsonl", ".ndjson")
_BAR = 20  # characters


class _Load(NamedTuple):
    """Loads the model, once the first row is read; and what shows the rows that are done."""

    model: str | None
    device: str | None
    progress: ProgressDisplay | None = None

    def __call__(self) -> PairScorer:
        return load_scorer(self.model, device=self.device)

    def told(self, done: int) -> None:
        if self.progress is not None:
            self.progress("scoring", done, 0, f"{done:,} rows")


def _score_to_file(
    file: Path,
    output: Path,
    *,
    model: str | None,
    scale: Scale,
    device: str | None,
    progress: ProgressDisplay | None = None,
) -> None:
    """Scores a file into another, whose suffix says the format."""
    check_outputs(output=output)
    load = _Load(model, device, progress)
    if output.suffix.lower() == ".parquet":
        rows = _score_parquet(file, output, load, scale=scale)
    else:
        table = is_table(output)
        rows = write_records(output, _scored(file, load, scale=scale, table=table))
    typer.echo(f"{output}: {rows} rows scored", err=True)


def _score_parquet(file: Path, output: Path, load: _Load, *, scale: Scale) -> int:
    """Scores a Parquet file into another, which keeps the types of the columns."""
    if suffix_of(file) != ".parquet":
        raise InputError(
            f"{output}: Parquet is written where --file is Parquet too. Give an --output that ends "
            "in .csv, .tsv or .jsonl."
        )
    arrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    scored = _scored(file, load, scale=scale, others=False)
    scores = array("f", (float(str(row["score"])) for row in scored))
    rows = 0
    with ExitStack() as stack:  # the first reading found every fault of the file
        unfinished = stack.enter_context(replacing(output))
        source = stack.enter_context(parquet.ParquetFile(file, pre_buffer=False))
        writer = None
        for batch in source.iter_batches(batch_size=ROWS):
            kept = arrow.Table.from_batches([batch])
            kept = kept.rename_columns(unique_names(["score", *kept.column_names])[1:])
            added = arrow.array(np.array(scores[rows : rows + len(batch)]))
            kept = kept.append_column("score", added)
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(unfinished, kept.schema))
            writer.write_table(kept)
            rows += len(batch)
    return rows


def _show_table(file: Path, load: _Load, *, scale: Scale) -> None:
    """Prints each sentence pair once, and below it its conditions with their scores as bars."""
    from condsim.console import Terminal

    records = _scored(file, load, scale=scale, block=SHOWN + 1)
    rows = list(islice(records, SHOWN + 1))
    console = Terminal(highlight=False)
    shown = rows[:SHOWN]
    width = min(40, max(len(str(row["condition"])) for row in shown))
    for pair, group in groupby(shown, key=lambda row: (row["sentence1"], row["sentence2"])):
        _print_pair(console, pair, list(group), scale=scale, width=width)
    if len(rows) > SHOWN:
        typer.echo(f"These are the first {SHOWN} rows; --output FILE writes all of them.", err=True)


def _print_pair(
    console: Terminal, pair: Sequence[object], rows: list[Record], *, scale: Scale, width: int
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
        value = float(str(row["score"]))
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        style = "green" if share >= 0.5 else "red"
        bar = Text(block * max(1, round(_BAR * share)), style=style)
        grid.add_row("", Text(str(row["condition"])), f"{value:.2f}", bar)
    console.print(grid)
    console.print()


def _scored(
    file: Path,
    load: _Load,
    *,
    scale: Scale,
    table: bool = False,
    block: int | None = None,
    others: bool = True,
) -> Iterator[Record]:
    """Yields the rows of a file with their scores; the model is loaded when the first is read."""
    # For a ``table``, every row has the columns of all rows.
    ragged, records = _records(file, table=table, others=others)
    scored = _with_scores(records, load, scale=scale, block=block or ROWS)
    return aligned_records(scored, last=["score"]) if table and ragged else scored


def _with_scores(
    records: Iterator[dict[str, object]], load: _Load, *, scale: Scale, block: int
) -> Iterator[Record]:
    from condsim.model.embedding import EmbeddingScorer

    first = next(records)
    scorer = load()
    if isinstance(scorer, EmbeddingScorer):
        scorer.keep_vectors(_KEPT)
    pending, done = [first, *islice(records, block - 1)], 0
    while pending:
        load.told(done)
        columns = ([str(row[name]) for row in pending] for name in _COLUMNS)
        sentences1, sentences2, conditions = columns
        scores = scorer.score(sentences1, sentences2, conditions, scale=scale)
        for row, value in zip(pending, scores, strict=True):
            # str of a float32 is the shortest text that reads back the same.
            yield {**row, "score": float(str(value))}
        done += len(pending)
        pending = list(islice(records, block))


def _records(file: Path, *, table: bool, others: bool) -> tuple[bool, Iterator[dict[str, object]]]:
    """Opens a file, or standard input: whether rows may differ in columns, and the checked rows."""
    if str(file) == "-":
        if sys.stdin is None:
            raise InputError("Standard input is closed; give --file the name of a file.")
        suffix, rows = iter_stream(
            sys.stdin.buffer, name="standard input", columns=_COLUMNS, others=True
        )
    else:
        suffix, rows = suffix_of(file), iter_rows(file, columns=_COLUMNS, others=others)

    def checked() -> Iterator[dict[str, object]]:
        for row in rows:
            texts = {name: row.text(name) for name in _COLUMNS}
            yield kept_record(row, table=table, beside=["score"]) | texts

    return suffix in _JSON, checked()


def score(
    sentence1: Annotated[str | None, typer.Argument()] = None,
    sentence2: Annotated[str | None, typer.Argument()] = None,
    condition: Annotated[str | None, typer.Argument()] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File to score: CSV, TSV, JSONL or Parquet with sentence1, sentence2, condition; "
            "- reads TSV or JSONL from standard input. With --engine ray, a pattern of many.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to write: .csv, .tsv, .jsonl, or .parquet if --file is. With --engine ray, "
            "a folder.",
        ),
    ] = None,
    model: Model = None,
    device: Device = None,
    scale: Annotated[
        Scale,
        typer.Option(
            help="unit: from 0 to 1, 0.5 is the middle. likert: from 1 to 5. raw: the cosine."
        ),
    ] = "unit",
    table: Annotated[
        bool | None,
        typer.Option(
            "--table/--no-table",
            help="Print a human-readable table, or tab-separated rows.",
            show_default="a table on a terminal",
        ),
    ] = None,
    engine: Engine = "local",
    address: RayAddress = None,
    workers: RayWorkers = None,
) -> None:
    """Score how similar two sentences are with respect to a condition.

    With --file, keeps all columns and adds `score`; a column of that name becomes `score.1`. Files
    can have any size: rows are read, scored and written a few thousand at a time. The output file
    appears only when it is complete.

    **Examples**

    `condsim score "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim score --file pairs.csv`

    `condsim score --file pairs.csv --output scored.csv --scale likert`

    `cat pairs.tsv | condsim score --file - > scored.tsv`

    `condsim score --engine ray --file 's3://bucket/pairs/part-*.parquet' --output s3://bucket/scored`
    """
    check_engine(engine, address, workers)
    if file is None:
        if output is not None or table is not None or engine != "local":
            raise InputError("--output, --table and --engine ray go with --file.")
        texts = whole_pair(sentence1, sentence2, condition)
        found = load_scorer(model, device=device).score(*texts, scale=scale)
        typer.echo(f"{found:.3f}")
        return
    if sentence1 is not None:
        raise InputError("Give either two sentences and a condition, or --file, not both.")
    if output is not None and table is not None:
        raise InputError("Give either --output or --table/--no-table, not both.")

    if engine == "ray":
        from condsim.cli.parts import work_on_parts

        work_on_parts(
            file,
            output,
            partial(_score_to_file, model=model, scale=scale, device=device),
            settings={"command": "score", "model": revision_of(model), "scale": scale},
            address=address,
            workers=workers,
            device=device,
        )
    elif output is not None:
        with long_work(log=None, resume="Nothing was written.") as progress:
            _score_to_file(file, output, model=model, scale=scale, device=device, progress=progress)
    else:
        if sys.stdout is None:  # closed from the start
            raise InputError("Standard output is closed; give --output the name of a file.")
        if sys.stdout.isatty() if table is None else table:
            _show_table(file, _Load(model, device), scale=scale)
            return
        with long_work(log=None, resume="The rows printed so far are not all.") as progress:
            load = _Load(model, device, None if sys.stdout.isatty() else progress)
            write_tsv(sys.stdout, _scored(file, load, scale=scale, table=True))
