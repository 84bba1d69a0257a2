"""``condsim build criteria``: conditional rows from labelled tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from condsim.cli.options import Exclude, JsonFile, RowFile, show_table, write_report
from condsim.cli.running import check_outputs, long_work

if TYPE_CHECKING:
    from condsim.rows.criteria.build import CriteriaReport
    from condsim.rows.criteria.settings import CriteriaSettings

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def criteria(
    tables: Annotated[
        list[Path],
        typer.Argument(help="Tables with a text and labels of it in each row, or JSON lines."),
    ],
    output: RowFile,
    text: Annotated[str, typer.Option(help="Column of the text.")] = "text",
    criteria: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of a criterion; may be repeated.", show_default="all other columns"
        ),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Separates several values in a cell, such as ','.")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            help="YAML file: wordings and values of each criterion, and the options below."
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="Most rows of each table.", show_default="20000")
    ] = None,
    form: Annotated[
        Literal["groups", "pairs"] | None,
        typer.Option(
            help="groups of texts for training, or pairs for evaluation.", show_default="groups"
        ),
    ] = None,
    group_size: Annotated[
        int | None, typer.Option(min=3, max=32, help="Texts in a group.", show_default="6")
    ] = None,
    hard: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of groups with misleading words.", show_default="0.5"
        ),
    ] = None,
    own_name: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of rows with the criterion's own name.", show_default="0.5"
        ),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(min=2, help="Grades that columns of numbers are cut into.")
    ] = None,
    balance: Annotated[
        Literal["exact", "none"] | None,
        typer.Option(
            help="exact: each condition is as often alike as different; none: keep all rows.",
            show_default="exact",
        ),
    ] = None,
    exclude: Exclude = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the draws.", show_default="0")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Draw conditional training rows from any labelled table.

    Each labelled column becomes a condition: two texts are alike (5) if their labels are the same
    and different (1) if they are not. Rows are balanced so that the condition alone tells nothing.

    **Examples**

    `condsim build criteria tickets.csv --output rows.csv`

    `condsim build criteria reviews.csv --text review --criteria topic --criteria stars --bins 5
    --output rows.csv`

    `condsim build criteria tickets.csv --settings criteria.yaml --form pairs --output dev.csv`
    """
    check_outputs(json=json, output=output)
    from condsim.rows.criteria.build import build_criteria
    from condsim.rows.records import plain_values

    given = {
        "rows": rows,
        "form": form,
        "group_size": group_size,
        "hard": hard,
        "own_name": own_name,
        "bins": bins,
        "balance": balance,
        "seed": seed,
    }
    with long_work(log=None) as progress:
        report = build_criteria(
            tables,
            output,
            _settings(
                settings, output, {key: one for key, one in given.items() if one is not None}
            ),
            text=text,
            criteria=criteria or None,
            separator=separator,
            exclude=exclude or (),
            progress=progress,
        )
    write_report(json, plain_values(report))
    _show(report)
    typer.echo(f"{output}: {report.rows:,} rows")


def _settings(path: Path | None, output: Path, given: dict[str, Any]) -> CriteriaSettings:
    """Settings of the file, those of the command line before them."""
    from condsim.config import read_mapping, validated
    from condsim.io import check_not_input
    from condsim.rows.criteria.settings import CriteriaSettings

    if path is None:
        return CriteriaSettings(**given)
    check_not_input(output, path)
    values = {**read_mapping(path, what=CriteriaSettings.what), **given}
    return validated(CriteriaSettings, values, what=CriteriaSettings.what, source=str(path))


def _show(report: CriteriaReport) -> None:
    rows = []
    for one in report.sets:
        overlap = "-" if math.isnan(one.word_overlap) else f"{100 * one.word_overlap:.1f}"
        numbers = f"{one.texts:,}", f"{one.rows:,}", f"{one.groups:,}", f"{len(one.criteria)}"
        rows.append((one.name, *numbers, overlap))
    show_table(("set", "texts", "rows", "groups", "criteria", "word overlap"), rows)
    for one in report.sets:
        typer.echo(
            f"{one.name}: {one.excluded:,} left out by --exclude, {one.repeated:,} repeated; rows "
            + ", ".join(f"{name}: {rows:,}" for name, rows in list(one.criteria.items())[:8])
            + ("; not used: " + ", ".join(one.unused[:8]) if one.unused else "")
        )
