"""``condsim build agreement`` and ``leakage``: what ratings and splits are worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from condsim.cli.running import check_output
from condsim.construction import (
    Cells,
    agreement_cells,
    blind_cells,
    model_cells,
    number,
    percent,
    shared_cells,
)
from condsim.errors import InputError
from condsim.files import replacing

if TYPE_CHECKING:
    from condsim.construction import AnnotatorQuality, LeakageReport, RatingReport


def rating_tables(report: RatingReport) -> list[Table]:
    """Lays out how far people agree with each other, and models with them.

    Args:
        report: The report.

    Returns:
        The tables.
    """
    tables = [
        _table("Agreement between people", agreement_cells(report)),
        annotator_table(report.annotators),
    ]
    if report.models:
        caption = "Against the median of the people, of the other people for one person."
        tables.append(_table("Models and people", model_cells(report), caption))
    return tables


def annotator_table(annotators: Sequence[AnnotatorQuality]) -> Table:
    """Lays out the work of each person.

    Args:
        annotators: The annotators.

    Returns:
        A row each.
    """
    rows = [
        (
            one.annotator,
            f"{one.ratings:,}",
            percent(one.agrees),
            percent(one.within_one),
            number(one.offset, 2),
            percent(one.does_not_apply),
            number(one.seconds),
            ", ".join(one.remarks),
        )
        for one in annotators
    ]
    head = ("annotator", "ratings", "agrees", "within 1", "offset", "n/a", "seconds", "remarks")
    caption = "Against the majority of the others; n/a: the condition does not apply."
    return _table("Annotators", Cells(head, rows), caption)


def leakage_tables(report: LeakageReport) -> list[Table]:
    """Lays out what the splits share, and what a model reaches that sees a part of each row.

    Args:
        report: The report.

    Returns:
        The tables.
    """
    caption = "of rows: rows of the second split that have a text of the first."
    return [
        _table("Texts in two splits", shared_cells(report), caption),
        _table("Blind baselines", blind_cells(report)),
    ]


def _table(title: str, cells: Cells, caption: str | None = None) -> Table:
    table = Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        collapse_padding=True,
        pad_edge=False,
    )
    for place, name in enumerate(cells.head):
        first = place == 0
        table.add_column(name, justify="left" if first else "right", overflow="fold")
    # A name is not broken, however narrow the terminal; a long text may be.
    table.columns[0].min_width = min(24, max((len(row[0]) for row in cells.rows), default=0))
    for row in cells.rows:
        table.add_row(*map(Text, row))
    return table


app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the report to this file.", show_default=False),
]


@app.command()
def agreement(
    ratings: Annotated[
        Path, typer.Argument(help="Ratings: Parquet, CSV, TSV or JSONL.", show_default=False)
    ],
    json_file: JsonFile = None,
) -> None:
    """Measure how far annotators agree, how good each is, and how far models agree with them.

    **Examples**

    `condsim build agreement ratings.parquet`

    `condsim build agreement ratings.csv --json agreement.json`
    """
    check_output("--json", json_file)
    from condsim.construction import Rating, collect_votes, read_rows, report_ratings

    report = report_ratings(collect_votes(read_rows(ratings, Rating)))
    _write_json(report.to_dict(), json_file)
    Console().print(*rating_tables(report), sep="\n")


@app.command()
def leakage(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The splits, as C-STS files; the first is what a model is trained on.",
            show_default=False,
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 0,
    resamples: Annotated[
        int, typer.Option(min=1, help="Bootstrap resamples of the sentence pairs.")
    ] = 1000,
    json_file: JsonFile = None,
) -> None:
    """Find what splits share, and what a model reaches that sees only a part of each row.

    **Examples**

    `condsim build leakage train.csv validation.csv test.csv`

    `condsim build leakage train.csv dev.csv --json leakage.json`
    """
    check_output("--json", json_file)
    from condsim.construction import find_leakage
    from condsim.tasks import load_csts

    tasks = {task.name: task for task in map(load_csts, files)}
    if len(tasks) < len(files):
        raise InputError("The splits must have different names. Rename one of the files.")
    report = find_leakage(tasks, resamples=resamples, seed=seed)
    _write_json(report.to_dict(), json_file)
    Console().print(*leakage_tables(report), sep="\n")
    for warning in report.warnings:
        typer.echo(f"warning: {warning}")


def _write_json(content: dict[str, object], path: Path | None) -> None:
    if path is None:
        return
    with replacing(path) as partial:
        text = json.dumps(content, ensure_ascii=False, indent=2)
        partial.write_text(text + "\n", encoding="utf-8")
