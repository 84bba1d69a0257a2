"""The ``condsim`` command: registers the function of each file."""

from __future__ import annotations

import typer

from condsim.cli import (
    applicability,
    average,
    contexts,
    data,
    encode,
    evaluate,
    export,
    info,
    predict,
    prompt,
    robustness,
    score,
    sweep,
    train,
)
from condsim.cli.build import app as build
from condsim.cli.running import run_app

app = typer.Typer(
    name="condsim",
    help="How similar are these two texts, with respect to X?",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command()(score.score)
app.command()(encode.encode)
app.command()(train.train)
app.command()(average.average)
app.command()(sweep.sweep)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(prompt.prompt)
app.command()(export.export)
app.command()(info.info)
app.command()(robustness.robustness)
app.add_typer(
    applicability.app,
    name="applicability",
    help="Whether a condition applies to two sentences.",
)
app.add_typer(build, name="build", help="Build a conditional-similarity data set of your own.")
app.add_typer(contexts.app, name="contexts", help="Learn similarity from raw text, no labels.")
app.add_typer(data.app, name="data", help="Look at data files.")


def run(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits the process.

    Exit status: 0 done, 2 the input breaks a rule (one line on stderr), 130 interrupted.
    """
    run_app(app, arguments)
