"""``condsim build teach``: rows labeled by models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from condsim.cli.options import Device, RowFile
from condsim.cli.process import long_work, print_result

app = typer.Typer()


@app.command()
def teach(
    file: Annotated[
        Path,
        Argument(help="Rows in the C-STS columns, labeled or not, or pairs without a condition."),
    ],
    output: RowFile,
    model: Annotated[
        list[str],
        Option(
            help="Teacher, as for `condsim score`; may be repeated, and the labels are the mean."
        ),
    ],
    given: Annotated[
        float, Option(min=0, max=1, help="Share of a row's own label in the new one.")
    ] = 0.0,
    device: Device = None,
) -> None:
    """Label rows by models, so that a smaller model can learn from them (distillation).

    Use rows that the models were not trained on, such as the output of `condsim build weak`. Pairs
    without the column `condition` are scored from 0 to 1, for one of the `sources` of a recipe.

    **Examples**

    `condsim build teach weak.csv --model runs/cross --model runs/bi --output taught.csv`

    `condsim build teach weak.csv --model default --given 0.3 --output taught.csv`

    `condsim build teach pairs.csv --model runs/backbone --output plain.csv`
    """
    from condsim.loading import load_scorer
    from condsim_annotation.teach import teach_file

    teachers = [load_scorer(name, device=device) for name in model]
    with long_work(log=None) as progress:
        rows = teach_file(file, output, teachers, given=given, progress=progress)
    print_result(
        f"{output}: {rows:,} rows labeled by {', '.join(teacher.name for teacher in teachers)}"
    )
