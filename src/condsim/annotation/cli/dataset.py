"""``condsim build dataset | split | agreement | leakage``: data sets and their quality."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.options import JsonFile, Resamples, show_table, write_report
from condsim.cli.running import check_outputs
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim.annotation.card import PlainTable
    from condsim.annotation.splits import SplitRules

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

RatingsFile = Annotated[Path, typer.Argument(help="Ratings, as `condsim build pull` writes them.")]
OutputFolder = Annotated[Path, typer.Option("--output", help="Folder of the data set.")]
Ratios = Annotated[str, typer.Option(help="Train, validation and test.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the splits and of the order of rows.")]
Group = Annotated[
    Literal["sentence", "pair"],
    typer.Option(help="Unit that may not be in two splits: a sentence, or (as in C-STS) a pair."),
]
Oversize = Annotated[
    Literal["keep", "cut"],
    typer.Option(
        help="A group of connected pairs that is larger than the smallest split: keep it whole, or "
        "cut it and drop the rows in between."
    ),
]
Format = Annotated[Literal["csv", "parquet"], typer.Option("--format", help="Of the split files.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the data set in the folder.")]
Name = Annotated[
    str | None, typer.Option(help="Name on the card.", show_default="that of the folder")
]
License = Annotated[
    str | None,
    typer.Option(
        "--license",
        help="Licence as the Hub names it, such as cc-by-4.0.",
        show_default="not stated",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="NAME=LICENCE",
        help="Where sentences are from, and what its owners allow. May be given again.",
    ),
]


@app.command()
def dataset(
    ratings: RatingsFile,
    output: OutputFolder,
    conditions: Annotated[
        Path | None,
        typer.Option(
            help="All conditions; shows which ones a model proposed and which were never rated."
        ),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="The candidates; shows which source a pair is from.")
    ] = None,
    labels: Annotated[
        Literal["median", "majority"], typer.Option(help="How ratings become a label.")
    ] = "median",
    min_ratings: Annotated[
        int, typer.Option(min=1, help="Rows with fewer ratings are dropped.")
    ] = 1,
    invalid_share: Annotated[
        float,
        typer.Option(
            help="A row is dropped if this share of its ratings, or more, says that the condition "
            "does not apply."
        ),
    ] = 0.5,
    order: Annotated[
        Literal["report", "drop-reversed", "drop-unordered"],
        typer.Option(help="Pairs whose high condition is not rated above the low one."),
    ] = "report",
    keep_lone: Annotated[
        bool, typer.Option("--keep-lone", help="Keep rows whose pair has lost its other row.")
    ] = False,
    count_models: Annotated[
        bool, typer.Option("--count-models", help="Ratings by models are votes, too.")
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
    """Make a data set of ratings: labels, splits, leakage report and card.

    The folder is loaded by `datasets`, and its files by `condsim train`. Every row that is left out
    is in `dropped.csv`, with the reason.

    **Examples**

    `condsim build dataset ratings.parquet --output tickets --source "tickets=internal use only"`

    `condsim build dataset ratings.parquet --output tickets --labels majority --min-ratings 3`
    """
    _require_extra()
    from condsim.annotation.labels import LabelRules
    from condsim.annotation.release import Target, build_dataset

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
        Target(output, name, license_, source or (), file_format, overwrite),
        labels=rules,
        splits=_split_rules(ratios, seed, group, oversize),
        conditions=conditions,
        candidates=candidates,
    )
    typer.echo(f"{output}: {facts.summary()}")


@app.command()
def split(
    file: Annotated[
        Path,
        typer.Argument(
            help="Rows with labels, in the columns of C-STS; pair_id and origin are kept."
        ),
    ],
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

    **Examples**

    `condsim build split labelled.csv --output tickets`

    `condsim build split labelled.csv --output tickets --ratios 80:10:10 --group pair`
    """
    _require_extra()
    from condsim.annotation.release import Target, split_dataset

    target = Target(output, name, license_, source or (), file_format, overwrite)
    facts = split_dataset(file, target, splits=_split_rules(ratios, seed, group, oversize))
    typer.echo(f"{output}: {facts.summary()}")


@app.command()
def agreement(
    ratings: Annotated[Path, typer.Argument(help="Ratings: Parquet, CSV, TSV or JSONL.")],
    json: JsonFile = None,
) -> None:
    """Measure how far annotators agree, how good each is, and how far models agree with them.

    **Examples**

    `condsim build agreement ratings.parquet`

    `condsim build agreement ratings.csv --json agreement.json`
    """
    check_outputs(json=json)
    from condsim.annotation.agreement import report_ratings
    from condsim.annotation.card import rating_tables
    from condsim.annotation.labels import collect_votes
    from condsim.rows.records import Rating, plain_values, read_rows

    report = report_ratings(collect_votes(read_rows(ratings, Rating)))
    write_report(json, plain_values(report))
    _show(rating_tables(report))


@app.command()
def leakage(
    files: Annotated[
        list[Path],
        typer.Argument(help="The splits, as C-STS files; the first is what a model is trained on."),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 0,
    resamples: Resamples = 1000,
    json: JsonFile = None,
) -> None:
    """Find what splits share, and what a model reaches that sees only a part of each row.

    **Examples**

    `condsim build leakage train.csv validation.csv test.csv`

    `condsim build leakage train.csv dev.csv --json leakage.json`
    """
    check_outputs(json=json)
    from condsim.annotation.card import leakage_tables
    from condsim.annotation.splits import find_leakage
    from condsim.data.csts import load_csts
    from condsim.rows.records import plain_values

    tasks = {task.name: task for task in map(load_csts, files)}
    if len(tasks) < len(files):
        raise InputError("The splits must have different names. Rename one of the files.")
    report = find_leakage(tasks, resamples=resamples, seed=seed)
    write_report(json, plain_values(report))
    _show(leakage_tables(report))
    for warning in report.warnings:
        typer.echo(f"warning: {warning}")


def _require_extra() -> None:
    """Raises the error of a missing extra before the work."""
    logging.basicConfig(format="%(message)s")
    for module in ("scipy", "matplotlib", "statsmodels", "krippendorff"):
        require(module, extra="build")


def _split_rules(
    ratios: str, seed: int, group: Literal["sentence", "pair"], oversize: Literal["keep", "cut"]
) -> SplitRules:
    from condsim.annotation.splits import SplitRules

    try:
        train, validation, test = map(float, ratios.split(":"))
    except ValueError:
        raise InputError(
            f"--ratios must be three numbers such as 60:15:25, for train, validation and test. Got "
            f"{ratios!r}."
        ) from None
    return SplitRules(ratios=(train, validation, test), seed=seed, group=group, oversize=oversize)


def _show(tables: Iterable[PlainTable]) -> None:
    for one in tables:
        show_table(one.head, one.rows, title=one.title, caption=one.caption)
