"""``condsim build criteria``: training rows from labeled tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.process import long_work, print_note, print_result
from condsim.data.batch import BlankRows
from condsim.data.text import FileFormat

if TYPE_CHECKING:
    from condsim.rows.build import CriteriaReport

app = typer.Typer()


@app.command()
def criteria(
    tables: Annotated[
        list[Path], Argument(help="Tables with a text and its labels in each row, or JSON lines.")
    ],
    output: options.RowFile,
    text: options.TextColumn = "text",
    criteria: Annotated[
        list[str] | None,
        Option(help="Column of a criterion. Repeatable.", show_default="all other columns"),
    ] = None,
    separator: Annotated[str | None, Option(help="Separator of values in a cell.")] = None,
    encoding: options.Encoding = None,
    settings: Annotated[
        Path | None, Option(help="YAML file: wordings, values and the options below.")
    ] = None,
    rows: Annotated[
        int | None,
        Option(min=2, help="Maximum number of rows of each table.", show_default="20000"),
    ] = None,
    form: Annotated[
        Literal["groups", "pairs"] | None,
        Option(help="groups for training, pairs for evaluation.", show_default="groups"),
    ] = None,
    group_size: Annotated[
        int | None, Option(min=3, max=32, help="Texts in a group.", show_default="6")
    ] = None,
    hard: Annotated[
        float | None,
        Option(min=0, max=1, help="Share of groups with misleading words.", show_default="0.5"),
    ] = None,
    own_name: Annotated[
        float | None,
        Option(
            min=0, max=1, help="Share of rows with the criterion's own name.", show_default="0.5"
        ),
    ] = None,
    bins: Annotated[int | None, Option(min=2, help="Grades of columns of numbers.")] = None,
    balance: Annotated[
        Literal["exact", "none"] | None,
        Option(
            help="exact: each condition is as often alike as different; none: all rows.",
            show_default="exact",
        ),
    ] = None,
    exclude: options.Exclude = None,
    seed: Annotated[int | None, Option(min=0, help="Seed of the draws.", show_default="0")] = None,
    strict: options.Strict = False,
    json: options.JsonFile = None,
) -> None:
    """Draw conditional training rows from any labeled table.

    Each labeled column becomes a condition: two texts are alike (5) if their labels are the same
    and different (1) if they are not. Rows are balanced so that the condition alone tells nothing.

    **Examples**

    `condsim build criteria tickets.csv --output rows.csv`

    `condsim build criteria reviews.csv --column review --criteria topic --criteria stars --bins 5
    --output rows.csv`

    `condsim build criteria tickets.csv --settings criteria.yaml --form pairs --output dev.csv`
    """
    from condsim.config import read_mapping, validated
    from condsim.rows.build import build_criteria
    from condsim.rows.settings import CriteriaSettings

    values: dict[str, Any] = {} if settings is None else read_mapping(settings, subject="criteria")
    # Options of the command line take precedence over the file.
    values |= options.given(
        rows=rows,
        form=form,
        group_size=group_size,
        hard=hard,
        own_name=own_name,
        balance=balance,
        bins=bins,
        seed=seed,
    )
    blank = BlankRows(strict=strict)
    with long_work(log=None) as progress:
        report = build_criteria(
            tables,
            output,
            validated(CriteriaSettings, values, subject="criteria", source=str(settings or "")),
            text=text,
            criteria=criteria or None,
            separator=separator,
            file_format=FileFormat.checked(None, encoding),
            blank=blank,
            exclude=exclude or (),
            progress=progress,
        )
    options.write_report(json, report)
    _print_criteria(report)
    print_note(blank.note("no row"))
    print_result(f"{output}: {report.rows:,} rows")


def _print_criteria(report: CriteriaReport) -> None:
    rows = []
    for table in report.sets:
        overlap = "-" if math.isnan(table.word_overlap) else f"{100 * table.word_overlap:.1f}"
        counts = table.texts, table.rows, table.groups, len(table.criteria)
        rows.append((table.name, *(f"{count:,}" for count in counts), overlap))
    options.show_table(("set", "texts", "rows", "groups", "criteria", "word overlap"), rows)
    for table in report.sets:
        rows_of = (f"{name}: {count:,}" for name, count in list(table.criteria.items())[:8])
        typer.echo(
            f"{table.name}: {table.excluded:,} left out by --exclude, {table.repeated:,} repeated; "
            f"rows {', '.join(rows_of)}"
            + ("; not used: " + ", ".join(table.unused[:8]) if table.unused else "")
        )
