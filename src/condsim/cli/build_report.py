"""``condsim build agreement`` and ``leakage``: what ratings and splits are worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from condsim.cli.outputs import check_output
from condsim.errors import InputError
from condsim.files import replacing

__all__ = ["app"]

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
    from condsim.cli.build_tables import rating_tables
    from condsim.construction.rating_report import report_ratings
    from condsim.construction.rows import Rating
    from condsim.construction.tables import read_rows
    from condsim.construction.votes import collect_votes

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
    from condsim.cli.build_tables import leakage_tables
    from condsim.construction.leakage import find_leakage
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
