"""The ``condsim`` command: registers one function per file and turns errors into one line."""

from __future__ import annotations

import sys

import typer

from condsim.cli import (
    applicability,
    average,
    build,
    build_annotate,
    build_answers,
    build_dataset,
    build_teach,
    build_weak,
    contexts,
    data,
    encode,
    evaluate,
    export,
    info,
    predict,
    prompt,
    reproduce,
    robustness,
    score,
    sweep,
    train,
)
from condsim.errors import CondSimError

__all__ = ["app", "run"]

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
app.command()(reproduce.reproduce)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(prompt.prompt)
app.command()(export.export)
app.command()(info.info)
app.command()(robustness.robustness)
# Without a name, so that their commands stand beside the others.
build.app.add_typer(build_annotate.app)
build.app.add_typer(build_dataset.app)
build.app.add_typer(build_weak.app)
build.app.add_typer(build_teach.app)
build.app.add_typer(build_answers.app)
app.add_typer(
    applicability.app,
    name="applicability",
    help="Whether a condition applies to two sentences.",
)
app.add_typer(build.app, name="build", help="Build a conditional-similarity data set of your own.")
app.add_typer(contexts.app, name="contexts", help="Learn similarity from raw text, no labels.")
app.add_typer(data.app, name="data", help="Look at data files.")


def run(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits the process.

    Exit status: 0 done, 2 the input breaks a rule (one line on stderr), 130 interrupted.

    Args:
        arguments: The words after ``condsim``; those of the process by default.
    """
    try:
        app(args=arguments)
    except CondSimError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
