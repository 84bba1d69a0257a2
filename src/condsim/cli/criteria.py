"""``condsim build criteria``: conditional rows from labeled tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from condsim.cli.options import (
    Exclude,
    JsonFile,
    RowFile,
    chosen_settings,
    show_table,
    write_report,
)
from condsim.cli.process import check_outputs, long_work

if TYPE_CHECKING:
    from condsim.rows.criteria.build import CriteriaReport

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def criteria(
    tables: Annotated[
        list[Path],
        typer.Argument(help="Tables with a text and its labels in each row, or JSON lines."),
    ],
    output: RowFile,
    text: Annotated[str, typer.Option(help="Column of the text.")] = "text",
    criteria: Annotated[
        list[str] | None,
        typer.Option(help="Column of a criterion. Repeatable.", show_default="all other columns"),
    ] = None,
    separator: Annotated[str | None, typer.Option(help="Separator of values in a cell.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="YAML file: wordings, values and the options below.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=2, help="Maximum number of rows of each table.", show_default="20000"),
    ] = None,
    form: Annotated[
        Literal["groups", "pairs"] | None,
        typer.Option(help="groups for training, pairs for evaluation.", show_default="groups"),
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
    bins: Annotated[int | None, typer.Option(min=2, help="Grades of columns of numbers.")] = None,
    balance: Annotated[
        Literal["exact", "none"] | None,
        typer.Option(
            help="exact: each condition is as often alike as different; none: all rows.",
            show_default="exact",
        ),
    ] = None,
    exclude: Exclude = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the draws.", show_default="0")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Draw conditional training rows from any labeled table.

    Each labeled column becomes a condition: two texts are alike (5) if their labels are the same
    and different (1) if they are not. Rows are balanced so that the condition alone tells nothing.

    **Examples**

    `condsim build criteria tickets.csv --output rows.csv`

    `condsim build criteria reviews.csv --text review --criteria topic --criteria stars --bins 5
    --output rows.csv`

    `condsim build criteria tickets.csv --settings criteria.yaml --form pairs --output dev.csv`
    """
    check_outputs(json=json, output=output)
    from condsim.config import read_mapping, validated
    from condsim.io import check_not_input
    from condsim.rows.criteria.build import build_criteria
    from condsim.rows.criteria.settings import CriteriaSettings

    options = chosen_settings(CriteriaSettings, locals())
    # The setting of this name has the wordings of the columns that the option names.
    options.pop("criteria", None)
    values: dict[str, Any] = {} if settings is None else read_mapping(settings, subject="criteria")
    # Options of the command line come before those of the file.
    values = {**values, **options}
    if settings is not None:
        check_not_input(output, settings)
    with long_work(log=None) as progress:
        report = build_criteria(
            tables,
            output,
            validated(CriteriaSettings, values, subject="criteria", source=str(settings or "")),
            text=text,
            criteria=criteria or None,
            separator=separator,
            exclude=exclude or (),
            progress=progress,
        )
    write_report(json, report)
    _print_criteria(report)
    typer.echo(f"{output}: {report.rows:,} rows")


def _print_criteria(report: CriteriaReport) -> None:
    rows = []
    for table in report.sets:
        overlap = "-" if math.isnan(table.word_overlap) else f"{100 * table.word_overlap:.1f}"
        counts = table.texts, table.rows, table.groups, len(table.criteria)
        rows.append((table.name, *(f"{count:,}" for count in counts), overlap))
    show_table(("set", "texts", "rows", "groups", "criteria", "word overlap"), rows)
    for table in report.sets:
        rows_of = (f"{name}: {count:,}" for name, count in list(table.criteria.items())[:8])
        typer.echo(
            f"{table.name}: {table.excluded:,} left out by --exclude, {table.repeated:,} repeated; "
            f"rows {', '.join(rows_of)}"
            + ("; not used: " + ", ".join(table.unused[:8]) if table.unused else "")
        )
