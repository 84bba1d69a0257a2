"""``python -m papers.suite NAME``: any number of models on the similarity tasks of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from condsim.cli.command import guard
from condsim.cli.files import Output
from condsim.cli.options import JsonFile
from condsim.cli.process import long_work, run_app
from condsim.errors import InputError
from condsim.loading import named_scorer
from condsim.model.base import SCORER_LOG
from condsim.model.baselines import UNFITTED_BASELINES
from papers.suite import measure_suite
from papers.suite.data import load_sts_suite
from papers.suite.tables import sts_markdown

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def main(
    suite: Annotated[
        str, typer.Argument(help="sts, sts-b, csts, afs, wiki-sections, or all that is found.")
    ],
    data: Annotated[Path, typer.Option(help="Folder of the data sets.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="As for `condsim evaluate`; also as LABEL=NAME. Repeatable.",
            show_default="the default model",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="With --bootstrap: the model to compare with.")
    ] = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="95 % intervals; mark significant differences.")
    ] = False,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples and the folds.")] = 0,
    aggregation: Annotated[
        Literal["all", "mean", "wmean"],
        typer.Option(help="How the subsets of a year become one number."),
    ] = "all",
    condition: Annotated[
        str | None, typer.Option(help="Condition for pairs that have none.", show_default="none")
    ] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        typer.Option(
            help="Number format of encoders; auto: the faster of float32 and bfloat16, measured."
        ),
    ] = "auto",
    json: JsonFile = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="Also write one line per metric to this CSV file."),
        Output(".csv"),
    ] = None,
) -> None:
    """Measure models on the similarity tasks that papers report; print a Markdown table.

    **Examples**

    `python -m papers.suite sts --data datasets --model default --model runs/new`

    `python -m papers.suite all --data datasets --bootstrap --json suite.json`
    """
    if against is not None and not bootstrap:
        raise InputError("--against marks differences by a bootstrap; give --bootstrap as well.")
    if condition is not None and not condition.strip():
        raise InputError("--condition must have text.")
    scorers = [named_scorer(name) for name in model or []] or [named_scorer(None)]
    reference = None if against is None else named_scorer(against)
    names = {scorer.name for scorer in scorers} | set(UNFITTED_BASELINES)
    if reference is not None and reference.name not in names:
        scorers.insert(0, reference)
    with long_work(log=SCORER_LOG) as progress:
        progress("reading the data", 0, 0)
        report = measure_suite(
            scorers,
            load_sts_suite(data, suite),
            against=None if reference is None else reference.name,
            condition=condition,
            aggregation=aggregation,
            resamples=resamples if bootstrap else 0,
            seed=seed,
            precision=precision,
            progress=progress,
        )
    if json is not None:
        report.to_json(json)
    if csv is not None:
        report.to_csv(csv)
    typer.echo(sts_markdown(report), nl=False)


if __name__ == "__main__":
    guard(app)
    run_app(app)
