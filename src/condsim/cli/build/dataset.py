"""``condsim build dataset`` and ``split``: ratings, or rows with labels, become a data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.build import report as build_report
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from condsim.construction import Description, SplitRules

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
app.add_typer(build_report.app)


class How(StrEnum):
    """How ratings become a label."""

    MEDIAN = "median"
    MAJORITY = "majority"


class Order(StrEnum):
    """What becomes of pairs whose C-High condition is not rated above their C-Low one."""

    REPORT = "report"
    DROP_REVERSED = "drop-reversed"
    DROP_UNORDERED = "drop-unordered"


class Group(StrEnum):
    """What must not be in two splits."""

    SENTENCE = "sentence"
    PAIR = "pair"


class Oversize(StrEnum):
    """What becomes of groups that are too large for a split."""

    KEEP = "keep"
    CUT = "cut"


class FileFormat(StrEnum):
    """Format of the split files."""

    CSV = "csv"
    PARQUET = "parquet"


RatingsFile = Annotated[
    Path,
    typer.Argument(help="Ratings, as `condsim build pull` writes them.", show_default=False),
]
OutputFolder = Annotated[
    Path, typer.Option("--output", help="Folder of the data set.", show_default=False)
]
Ratios = Annotated[str, typer.Option(help="Train, validation and test.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the splits and of the order of rows.")]
Grouping = Annotated[
    Group,
    typer.Option(help="What may not be in two splits: a sentence, or (as in C-STS) a pair."),
]
OversizeOption = Annotated[
    Oversize,
    typer.Option(
        help="A group of connected pairs that is larger than the smallest split: keep it whole, or "
        "cut it and drop the rows in between."
    ),
]
FormatOption = Annotated[FileFormat, typer.Option("--format", help="Of the split files.")]
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
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="NAME=LICENCE",
        help="Where sentences are from, and what its owners allow. May be given again.",
        show_default=False,
    ),
]


@app.command()
def dataset(
    ratings: RatingsFile,
    output: OutputFolder,
    conditions: Annotated[
        Path | None,
        typer.Option(
            help="All conditions: tells which a model proposed, and which were never rated.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(help="The candidates: tells which source a pair is from.", show_default=False),
    ] = None,
    labels: Annotated[How, typer.Option(help="How ratings become a label.")] = How.MEDIAN,
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
        Order, typer.Option(help="Pairs whose high condition is not rated above the low one.")
    ] = Order.REPORT,
    keep_lone: Annotated[
        bool, typer.Option("--keep-lone", help="Keep rows whose pair has lost its other row.")
    ] = False,
    count_models: Annotated[
        bool, typer.Option("--count-models", help="Ratings by models are votes, too.")
    ] = False,
    ratios: Ratios = "60:15:25",
    seed: Seed = 0,
    group: Grouping = Group.SENTENCE,
    oversize: OversizeOption = Oversize.KEEP,
    file_format: FormatOption = FileFormat.CSV,
    name: Name = None,
    license_: License = None,
    source: SourceOption = None,
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
    from condsim.construction import (
        Candidate,
        Condition,
        LabelRules,
        Making,
        Rating,
        assemble,
        collect_votes,
        decide_labels,
        prepare_folder,
        read_rows,
        report_ratings,
        to_dataset_rows,
        unrated_conditions,
        write_dataset,
    )

    rules = LabelRules(
        how=labels.value,
        min_ratings=min_ratings,
        invalid_share=invalid_share,
        order=order.value,
        keep_lone=keep_lone,
        count_models=count_models,
    )
    split_rules = _split_rules(ratios, seed, group, oversize)
    inputs = [path for path in (ratings, conditions, candidates) if path is not None]
    rated = collect_votes(read_rows(ratings, Rating))
    written = tuple(read_rows(conditions, Condition)) if conditions else ()
    decision = decide_labels(rated, rules)
    assembled = assemble(to_dataset_rows(decision.labelled, conditions=written), split_rules)
    description = _description(name, license_, source, output, inputs)
    people = any(row.people for row in rated)
    prepare_folder(output, overwrite=overwrite)
    facts = write_dataset(
        output,
        assembled,
        description,
        split_rules,
        making=Making(
            label_rules=rules,
            order=decision.order,
            ratings=report_ratings(rated) if people else None,
            dropped=(*decision.dropped, *unrated_conditions(written, rated)),
        ),
        candidates=read_rows(candidates, Candidate) if candidates else (),
        file_format=file_format.value,
    )
    typer.echo(f"{output}: {facts.summary()}")


@app.command()
def split(
    file: Annotated[
        Path,
        typer.Argument(
            help="Rows with labels, in the columns of C-STS; pair_id and origin are kept.",
            show_default=False,
        ),
    ],
    output: OutputFolder,
    ratios: Ratios = "60:15:25",
    seed: Seed = 0,
    group: Grouping = Group.SENTENCE,
    oversize: OversizeOption = Oversize.KEEP,
    file_format: FormatOption = FileFormat.CSV,
    name: Name = None,
    license_: License = None,
    source: SourceOption = None,
    overwrite: Overwrite = False,
) -> None:
    """Split rows that have labels, with leakage report and card.

    **Examples**

    `condsim build split labelled.csv --output tickets`

    `condsim build split labelled.csv --output tickets --ratios 80:10:10 --group pair`
    """
    _require_extra()
    from condsim.construction import (
        Making,
        assemble,
        prepare_folder,
        read_labelled_file,
        write_dataset,
    )

    rules = _split_rules(ratios, seed, group, oversize)
    rows, unlabelled = read_labelled_file(file)
    assembled = assemble(rows, rules)
    prepare_folder(output, overwrite=overwrite)
    facts = write_dataset(
        output,
        assembled,
        _description(name, license_, source, output, [file]),
        rules,
        making=Making(dropped=unlabelled),
        file_format=file_format.value,
    )
    typer.echo(f"{output}: {facts.summary()}")


def _require_extra() -> None:
    """Refuses to start without the libraries."""
    for module in ("scipy", "matplotlib", "statsmodels", "krippendorff"):
        require(module, extra="build")


def _split_rules(ratios: str, seed: int, group: Group, oversize: Oversize) -> SplitRules:
    from condsim.construction import SplitRules

    try:
        train, validation, test = map(float, ratios.split(":"))
    except ValueError:
        raise InputError(
            f"--ratios must be three numbers such as 60:15:25, for train, validation and test. Got "
            f"{ratios!r}."
        ) from None
    return SplitRules(
        ratios=(train, validation, test), seed=seed, group=group.value, oversize=oversize.value
    )


def _description(
    name: str | None,
    license_: str | None,
    sources: Sequence[str] | None,
    output: Path,
    inputs: Sequence[Path],
) -> Description:
    from condsim.construction import Description, Source, revisions_of

    return Description(
        name=name or output.resolve().name,
        license=license_,
        sources=tuple(Source.parse(text) for text in sources or ()),
        made_from=revisions_of(inputs),
    )
