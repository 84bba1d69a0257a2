"""``condsim build teach``: labels by models, for a smaller one to learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condsim.cli.outputs import check_output

__all__ = ["app", "teach"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def teach(
    file: Annotated[
        Path,
        typer.Argument(
            help="Rows in the C-STS columns, labelled or not, or pairs without a condition.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option(help="CSV or Parquet file to write.", show_default=False)],
    model: Annotated[
        list[str],
        typer.Option(
            help="Teacher, as for `condsim score`; may be repeated, and the labels are the mean.",
            show_default=False,
        ),
    ],
    given: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of a row's own label, below 1, in the new one."),
    ] = 0.0,
    device: Annotated[
        str | None, typer.Option(help="Where torch runs: cpu, cuda ...", show_default=False)
    ] = None,
) -> None:
    """Label rows by models, so that a smaller model can learn from them (distillation).

    The teachers' own training rows are poor teaching: give rows that they have not seen, such as
    those of `condsim build weak`. A file without the column `condition` is scored from 0 to 1, for
    the key `plain` of a recipe.

    **Examples**

    `condsim build teach weak.csv --model runs/cross --model runs/bi --output taught.csv`

    `condsim build teach weak.csv --model default --given 0.3 --output taught.csv`

    `condsim build teach pairs.csv --model runs/backbone --output plain.csv`
    """
    check_output("--output", output)
    from condsim.cli.stages import StageProgress
    from condsim.construction.teachers import teach_file
    from condsim.scorers.load import load_scorer

    teachers = [load_scorer(name, device=device) for name in model]
    with StageProgress() as progress:
        rows = teach_file(file, output, teachers, given=given, progress=progress)
    typer.echo(f"{output}: {rows:,} rows labelled by {', '.join(one.name for one in teachers)}")
