"""``condsim average``: several runs become one model, the mean of their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condsim.errors import require


def average(
    runs: Annotated[list[Path], typer.Argument(help="Output folders of `condsim train`.")],
    output: Annotated[Path, typer.Option(help="Folder for the model, its card and its report.")],
    name: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    pretrained: Annotated[
        str | None, typer.Option(help="Backbone of the runs, to have a share too.")
    ] = None,
    pretrained_share: Annotated[float, typer.Option(help="That share, between 0 and 1.")] = 0.1,
    float16: Annotated[bool, typer.Option("--float16", help="Store float16.")] = False,
) -> None:
    """Average the weights of runs that started from the same backbone.

    The result is one model, as fast as each of them and often better.

    **Example**

    `condsim average runs/seed-1 runs/seed-2 runs/seed-3 --output runs/average`
    """
    require("sentence_transformers", extra="train")
    from condsim.training.averaging import average_models

    report = average_models(
        runs,
        output,
        name=name,
        pretrained=pretrained,
        pretrained_share=pretrained_share,
        float16=float16,
    )
    dev = report.model.metrics["spearman"]
    typer.echo(f"{output}: dev Spearman {dev.value:.1f} [{dev.low:.1f}, {dev.high:.1f}]")
