"""``condsim build dataset | split | agreement | leakage``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.files import FOLDER
from condsim.cli.options import JsonFile, Resamples, show_table, write_report
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim_annotation.release import PlainTable
    from condsim_annotation.splits import SplitRules

OutputFolder = Annotated[Path, typer.Option("--output", help="Folder of the data set."), FOLDER]
LabelName = Literal["median", "majority"]
OrderName = Literal["report", "drop-reversed", "drop-unordered"]
Ratios = Annotated[str, typer.Option(help="Train, validation and test.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the splits and of the order of rows.")]
GroupName = Literal["sentence", "pair"]
Group = Annotated[GroupName, typer.Option(help="Unit that no two splits share; pair: as in C-STS.")]
OversizeName = Literal["keep", "cut"]
Oversize = Annotated[
    OversizeName,
    typer.Option(
        help="A group of connected pairs that is larger than the smallest split: keep it whole, or "
        "cut it and drop the rows in between."
    ),
]
FormatName = Literal["csv", "parquet"]
Format = Annotated[FormatName, typer.Option("--format", help="File format of the splits.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the data set in the folder.")]
Name = Annotated[str | None, typer.Option(help="Name on the card, if not the folder's.")]
License = Annotated[str | None, typer.Option("--license", help="License, such as cc-by-4.0.")]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="NAME=LICENSE", help="Source of sentences; repeatable."),
]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def dataset(
    ratings: Annotated[Path, typer.Argument(help="Ratings, as `condsim build pull` writes them.")],
    output: OutputFolder,
    conditions: Annotated[
        Path | None, typer.Option(help="All conditions: unrated ones, and those by models.")
    ] = None,
    candidates: Annotated[Path | None, typer.Option(help="Sources of the pairs.")] = None,
    labels: Annotated[LabelName, typer.Option(help="Statistic of the ratings.")] = "median",
    min_ratings: Annotated[int, typer.Option(min=1, help="Drop rows with fewer ratings.")] = 1,
    invalid_share: Annotated[
        float, typer.Option(help="Drop a row if this share of its ratings says 'does not apply'.")
    ] = 0.5,
    order: Annotated[
        OrderName, typer.Option(help="Pairs whose high condition is not rated above the low one.")
    ] = "report",
    keep_lone: Annotated[
        bool, typer.Option("--keep-lone", help="Keep rows whose pair has lost its other row.")
    ] = False,
    count_models: Annotated[
        bool, typer.Option("--count-models", help="Count ratings by models as votes.")
    ] = False,
    ratios: Ratios = "60:15:25",
    seed: Seed = 0,
    group: Group = "sentence",
    oversize: Oversize = "keep",
    file_format: Format = "csv",
    name: Name = None,
    license_: License = None,
    source: Sources = None,
    overwrite: Overwrite = False,
) -> None:
    """Build a data set from ratings: labels, splits, leakage report and card.

    The folder is loaded by `datasets`, and its files by `condsim train`. Every row that is left out
    is in `dropped.csv`, with the reason.

    **Examples**

    `condsim build dataset ratings.parquet --output tickets --source "tickets=internal use only"`

    `condsim build dataset ratings.parquet --output tickets --labels majority --min-ratings 3`
    """
    _require_extra()
    from condsim_annotation.records import LabelRules
    from condsim_annotation.release import Target, build_dataset, fill_page

    rules = LabelRules(
        how=labels,
        min_ratings=min_ratings,
        invalid_share=invalid_share,
        order=order,
        keep_lone=keep_lone,
        count_models=count_models,
    )
    facts = build_dataset(
        ratings,
        Target(output, name, license_, _licenses(source), file_format, overwrite),
        labels=rules,
        splits=_split_rules(ratios, seed, group, oversize),
        conditions=conditions,
        candidates=candidates,
    )
    typer.echo(f"{output}: {fill_page('dataset-summary.txt', facts)}")


@app.command()
def split(
    file: Annotated[Path, typer.Argument(help="C-STS file; pair_id and origin are kept.")],
    output: OutputFolder,
    ratios: Ratios = "60:15:25",
    seed: Seed = 0,
    group: Group = "sentence",
    oversize: Oversize = "keep",
    file_format: Format = "csv",
    name: Name = None,
    license_: License = None,
    source: Sources = None,
    overwrite: Overwrite = False,
) -> None:
    """Split rows that have labels, with leakage report and card.

    **Example**: `condsim build split labeled.csv --output tickets`
    """
    _require_extra()
    from condsim_annotation.release import Target, fill_page, split_dataset

    target = Target(output, name, license_, _licenses(source), file_format, overwrite)
    facts = split_dataset(file, target, splits=_split_rules(ratios, seed, group, oversize))
    typer.echo(f"{output}: {fill_page('dataset-summary.txt', facts)}")


def _require_extra() -> None:
    """Raise the error of a missing extra before the work."""
    logging.basicConfig(format="%(message)s")
    for module in ("networkx", "matplotlib", "statsmodels", "krippendorff", "jinja2"):
        require(module, extra="build")


def _split_rules(ratios: str, seed: int, group: GroupName, oversize: OversizeName) -> SplitRules:
    from condsim_annotation.splits import SplitRules

    try:
        train, validation, test = map(float, ratios.split(":"))
    except ValueError:
        raise InputError(f"--ratios must be three numbers, as 60:15:25; got {ratios!r}.") from None
    return SplitRules(ratios=(train, validation, test), seed=seed, group=group, oversize=oversize)


def _licenses(sources: Sequence[str] | None) -> dict[str, str]:
    """Read sources and their licenses, such as ``"tickets=internal use only"``."""
    licenses = {}
    for text in sources or ():
        name, _, license = map(str.strip, text.partition("="))
        if not name:
            raise InputError(f"A source must be NAME=LICENSE; got {text!r}.")
        licenses[name] = license
    return licenses


@app.command("agreement")
def report_agreement(
    ratings: Annotated[Path, typer.Argument(help="Ratings: Parquet, CSV, TSV or JSONL.")],
    json: JsonFile = None,
) -> None:
    """Measure the agreement of annotators, the quality of each, and the agreement of models.

    **Example**: `condsim build agreement ratings.parquet`
    """
    from condsim_annotation.agreement import report_ratings
    from condsim_annotation.records import Rating, collect_votes
    from condsim_annotation.release import rating_tables
    from condsim_annotation.tables import read_rows

    report = report_ratings(collect_votes(read_rows(ratings, Rating)))
    write_report(json, report)
    _show_tables(rating_tables(report))


@app.command()
def leakage(
    files: Annotated[list[Path], typer.Argument(help="C-STS files, the train split first.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 0,
    resamples: Resamples = 1000,
    json: JsonFile = None,
) -> None:
    """Find texts that splits share, and the results of models that see only a part of each row.

    **Example**: `condsim build leakage train.csv validation.csv test.csv`
    """
    from condsim.data.csts import load_csts
    from condsim_annotation.release import leakage_tables
    from condsim_annotation.splits import find_leakage

    tasks = {task.name: task for task in map(load_csts, files)}
    if len(tasks) < max(2, len(files)):
        raise InputError(f"Leakage needs two splits or more of different names; got {[*tasks]}.")
    report = find_leakage(tasks, resamples=resamples, seed=seed)
    write_report(json, report)
    _show_tables(leakage_tables(report))
    for warning in report.warnings:
        typer.echo(f"warning: {warning}")


def _show_tables(tables: Iterable[PlainTable]) -> None:
    for table in tables:
        show_table(table.head, table.rows, title=table.title, caption=table.caption)
