"""``condsim robustness``: how much scores change when a condition is reworded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from condsim.cli.running import check_output

if TYPE_CHECKING:
    from condsim.evaluation import Metric, Robustness


def robustness(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV, JSONL or Parquet file with the columns sentence1, sentence2, "
            "condition_group, condition.",
            show_default="the built-in set",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or Hub name.", show_default="the model that ships"),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Number of wordings to list, worst first.")] = 10,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Also write the result as JSON.")] = None,
) -> None:
    """Measure how much scores change when a condition is reworded without changing its meaning.

    Takes, for each sentence pair and each `condition_group` of the file, the standard deviation of
    the score (0 to 1) over the wordings. Prints mean and 95th percentile with 95 % intervals, for
    each condition and overall, then the wordings that change scores most.

    **Examples**

    `condsim robustness`

    `condsim robustness my-rewordings.csv --model runs/new --json robustness.json`
    """
    from condsim.evaluation import robustness as measure, write_json
    from condsim.loading import load_scorer
    from condsim.tasks import BUNDLED_REWORDINGS, load_rewordings

    check_output("--json", json)
    rewordings = load_rewordings(file or BUNDLED_REWORDINGS)
    result = measure(load_scorer(model), rewordings, resamples=resamples, seed=seed)
    if json is not None:
        write_json(result.to_dict(), json)
    _show(result, top=top)


def _show(result: Robustness, *, top: int) -> None:
    from condsim.evaluation import BAR

    console = Console()
    table = Table(title=Text(f"{result.model}: {result.groups} pairs, {result.rows} wordings"))
    table.add_column("condition")
    table.add_column("deviation", justify="right")
    table.add_column("95 % interval", justify="right")
    for kind, figure in sorted(result.kinds.items(), key=lambda item: -item[1].value):
        table.add_row(Text(kind), *_cells(figure))
    table.add_section()
    table.add_row("mean", *_cells(result.mean))
    table.add_row("95th percentile", *_cells(result.p95))
    console.print(table)
    if top:
        table = Table(title="Wordings that change scores most")
        table.add_column("wording", overflow="fold")
        table.add_column("distance", justify="right")
        table.add_column("shift", justify="right")
        for one in result.wordings[:top]:
            table.add_row(Text(one.condition), f"{one.distance:.3f}", f"{one.shift:+.3f}")
        console.print(table)
    side = "below" if result.passes else "not below"
    typer.echo(f"The mean deviation, {result.mean.value:.3f}, is {side} the bar of {BAR:g}.")


def _cells(figure: Metric) -> tuple[str, str]:
    return f"{figure.value:.3f}", f"{figure.low:.3f} to {figure.high:.3f}"
