"""``condsim score``: one pair, or a file of pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Input, Output, open_stream
from condsim.cli.pairs import (
    PairColumns,
    PairFile,
    PairsUnderConditions,
    SinglePair,
    open_pairs,
    pair_arguments,
)
from condsim.cli.process import long_work, print_note
from condsim.data.batch import ROWS_PER_BATCH, Batch, BlankRows
from condsim.data.formats import WRITTEN, is_table, open_writer
from condsim.errors import InputError, ModelError
from condsim.loading import load_scorer
from condsim.model.applicability import silence

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay
    from condsim.model.base import PairScorer, Scale
    from condsim.terminal import Terminal
    from condsim.types import FloatArray

# Vectors of texts that may come again in a later batch.
_CACHED_VECTORS = 16_384
_ROWS_OF_TABLE = 200
_BAR_WIDTH = 20
_SCORE_RANGES = {"unit": (0.0, 1.0), "likert": (1.0, 5.0), "raw": (-1.0, 1.0)}


def score(
    sentence1: Annotated[str | None, Argument()] = None,
    sentence2: Annotated[str | None, Argument()] = None,
    condition: Annotated[str | None, Argument()] = None,
    *,
    pairs: PairsUnderConditions,
    file: Annotated[
        Path | None, Option(help="File of pairs; - is standard input."), Input(streamed=True)
    ] = None,
    output: Annotated[
        Path | None,
        Option(help=f"File to write: {WRITTEN}; or .parquet if --file is."),
        Output(".tsv"),
    ] = None,
    model: options.Model = None,
    device: options.Device = None,
    scale: options.Scale = "unit",
    overall: options.Overall = 0.0,
    applicability: Annotated[
        bool, Option("--applicability", help="Also add applicability.")
    ] = False,
    table: Annotated[
        bool | None,
        Option(
            "--table/--no-table",
            help="Print a table, or tab-separated rows.",
            show_default="a table on a terminal",
        ),
    ] = None,
) -> None:
    """Score how similar two sentences are with respect to a condition.

    With --file, keeps all columns and adds `score`, or `score: CONDITION` for each of several
    conditions. Without a condition, pairs are compared as a whole. Files can have any size; the
    output appears when it is complete.

    **Examples**

    `condsim score "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim score --file pairs.csv --output scored.csv --scale likert`

    `condsim score --file pairs.csv --text1 left --text2 right --condition "the color" --condition
    "the use"`
    """
    source = pair_arguments(sentence1, sentence2, condition, pairs.conditions, file)
    if isinstance(source, SinglePair):
        file_options = (output, applicability, pairs.strict, pairs.separator, pairs.encoding)
        if any(file_options) or table is not None:
            raise InputError("Options of files, such as --output and --table, go with --file.")
        scorer = load_scorer(model, device=device)
        _print_scores(source, scorer, scale=scale, overall=overall)
        return
    if table is not None and (output is not None or (table and applicability)):
        raise InputError(
            "--table/--no-table cannot go with --output, nor --table with more columns."
        )
    scoring = _Scoring(pairs, model, device, scale, overall, applicability)
    if table is None:
        table = sys.stdout is not None and sys.stdout.isatty() and not applicability
    if table and output is None:
        _show_scores(source, scoring)
    else:
        _write_scores(source, output, scoring)


def _print_scores(pair: SinglePair, scorer: PairScorer, *, scale: Scale, overall: float) -> None:
    """Print the score of one pair, or a line with the score under each of several conditions."""
    sentences = pair.sentence1, pair.sentence2
    for condition in pair.conditions:
        value = scorer.score(*sentences, condition, scale=scale, overall=overall)
        typer.echo(f"{value:.3f}" if len(pair.conditions) == 1 else f"{value:.3f}\t{condition}")
        (remark,) = _remarks(scorer, [(sentences, condition or "", value)])
        if condition and remark:
            print_note(f"{condition!r}: {remark}, so its score means little.")


class _Scoring(NamedTuple):
    """Options of ``condsim score`` that decide the added columns."""

    pairs: PairFile
    model: str | None = None
    device: str | None = None
    scale: Scale = "unit"
    overall: float = 0.0
    applicability: bool = False


class _ScoredFile:
    """Batches of a file with their scores; the model is loaded after the first batch is read."""

    scorer: PairScorer

    def __init__(self, file: Path, scoring: _Scoring, *, size: int | None = None) -> None:
        self.scoring = scoring
        self.blank = BlankRows(strict=scoring.pairs.strict)
        self.columns, self._batches = open_pairs(file, scoring.pairs, size=size or ROWS_PER_BATCH)

    def batches(
        self, progress: ProgressDisplay | None = None, *, table: bool = False
    ) -> Iterator[Batch]:
        """Yield the batches with the added columns, the first checked if a table is written."""
        from condsim.model.embedding import EmbeddingScorer

        first = next(self._batches)
        if table:
            first.check_flat()
        self.scorer = scorer = load_scorer(self.scoring.model, device=self.scoring.device)
        if isinstance(scorer, EmbeddingScorer):
            scorer.set_cache_size(_CACHED_VECTORS)
        elif self.scoring.applicability:
            raise ModelError(f"{scorer.name} gives scores only; --applicability needs embeddings.")
        done = 0
        for batch in chain([first], self._batches):
            if progress is not None:
                progress("scoring", done, 0, f"{done:,} rows")
            self._add_columns(batch, scorer)
            yield batch
            done += len(batch)

    def print_notes(self) -> None:
        """Say that pairs had no condition, and count the rows without text."""
        if self.columns.is_plain:
            print_note("No condition was given, so the pairs were compared as a whole.")
        print_note(self.blank.note("no score"))

    def _add_columns(self, batch: Batch, scorer: PairScorer) -> None:
        """Add the columns of each condition: NaN, an empty cell, in a row without text."""
        columns, scoring = self.columns, self.scoring
        rows, sentences1, sentences2, row_conditions = columns.read(batch, self.blank)
        functions: dict[str, Callable[..., Any]] = {
            "score": partial(scorer.score, scale=scoring.scale, overall=scoring.overall)
        }
        if scoring.applicability:
            functions["applicability"] = scorer.applicability  # type: ignore[attr-defined]
        names = {kind: columns.added(kind) for kind in functions}
        for condition in columns.conditions or (None,):
            conditions = condition if row_conditions is None else row_conditions
            for kind, function in functions.items():
                values: FloatArray = np.full(len(batch), np.nan, np.float32)
                if len(rows):
                    values[rows] = function(sentences1, sentences2, conditions)
                batch[names[kind][condition]] = values


def _write_scores(file: Path, output: Path | None, scoring: _Scoring) -> None:
    """Score a file into another, whose suffix decides the format, or print tab-separated rows."""
    target = output or open_stream(sys.stdout, "output")
    table = output is None or is_table(output, any_rows=False)
    resume = "The rows printed so far are not all." if output is None else "Nothing was written."
    with long_work(log=None, resume=resume) as progress:
        scored = _ScoredFile(file, scoring)
        # Bars would stand between rows on a terminal.
        bars = None if output is None and sys.stdout.isatty() else progress
        with open_writer(target) as writer:
            for batch in scored.batches(bars, table=table):
                writer.write(batch)
    scored.print_notes()
    if output is not None:
        print_note(f"{output}: {writer.rows - scored.blank.count} rows scored")


def _show_scores(file: Path, scoring: _Scoring) -> None:
    """Print each pair of texts once, and below it its conditions with their scores as bars."""
    from condsim.terminal import Terminal

    scored = _ScoredFile(file, scoring, size=_ROWS_OF_TABLE + 1)
    batch = next(scored.batches())
    console = Terminal(highlight=False)
    lines = _scored_lines(batch, scored.columns)
    remarks = [""] * len(lines)
    if not scored.columns.is_plain:
        remarks = _remarks(scored.scorer, lines)
    width = min(40, max(len(condition) for _, condition, _ in lines))
    marked_lines = zip(lines, remarks, strict=True)
    for pair, group in groupby(marked_lines, key=lambda line: line[0][0]):
        scores = [(condition, score, remark) for (_, condition, score), remark in group]
        _print_pair(console, pair, scores, scale=scoring.scale, width=width)
    scored.print_notes()
    if len(batch) > _ROWS_OF_TABLE:
        print_note(f"These are the first {_ROWS_OF_TABLE} rows; --output FILE writes all of them.")


_Line = tuple[tuple[str, str], str, float]


def _remarks(scorer: PairScorer, lines: Sequence[_Line]) -> list[str]:
    """Say which texts of a pair seem not to mention the condition; "" where it seems to apply."""
    from condsim.model.embedding import EmbeddingScorer

    remarks = [""] * len(lines)
    rows = [row for row, (_, name, score) in enumerate(lines) if name and not np.isnan(score)]
    if rows and isinstance(scorer, EmbeddingScorer) and scorer.head is not None:
        conditions = [lines[row][1] for row in rows]
        first, second = (
            scorer.mentions([lines[row][0][side] for row in rows], conditions) for side in (0, 1)
        )
        for row, *chances in zip(rows, first.tolist(), second.tolist(), strict=True):
            remarks[row] = silence(*chances)
    return remarks


def _scored_lines(batch: Batch, columns: PairColumns) -> list[_Line]:
    """Return the pair, condition and score of each line of the printed table."""
    lines = []
    scores = [batch.added[name] for name in columns.added("score").values()]
    for index, row in enumerate(batch.rows[:_ROWS_OF_TABLE]):
        pair = (str(row.cells[columns.text1] or ""), str(row.cells[columns.text2] or ""))
        if columns.condition is not None:
            conditions: Sequence[str] = [str(row.cells[columns.condition] or "")]
        else:
            conditions = columns.conditions or ["as a whole"]
        for condition, values in zip(conditions, scores, strict=True):
            lines.append((pair, condition, float(values[index])))  # type: ignore[arg-type]
    return lines


def _print_pair(
    console: Terminal,
    pair: tuple[str, str],
    scores: Sequence[tuple[str, float, str]],
    *,
    scale: str,
    width: int,
) -> None:
    from rich.table import Table
    from rich.text import Text

    low, high = _SCORE_RANGES[scale]
    block = "#" if console.options.ascii_only else "█"
    for sentence in pair:
        console.print(Text(sentence, style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=2)
    grid.add_column(width=width)
    grid.add_column(justify="right", width=5)
    grid.add_column(min_width=_BAR_WIDTH)
    for condition, score, remark in scores:
        if np.isnan(score):
            grid.add_row("", Text(condition), "-", "")
            continue
        share = min(1.0, max(0.0, (score - low) / (high - low)))
        style = "dim" if remark else "green" if share >= 0.5 else "red"
        bar = Text(block * max(1, round(_BAR_WIDTH * share)), style=style)
        if remark:
            bar.append(f"\n{remark}")
        grid.add_row("", Text(condition), f"{score:.2f}", bar)
    console.print(grid, "")
