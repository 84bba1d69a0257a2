"""Runs one experiment by name: ``python -m experiments NAME``."""

from __future__ import annotations

import sys

import typer

from condsim.errors import CondSimError
from experiments.reproduce import reproduce

app = typer.Typer(name="experiments", rich_markup_mode="markdown", pretty_exceptions_enable=False)
app.command()(reproduce)


def run(arguments: list[str] | None = None) -> None:
    """Runs the command line of the experiments and exits the process."""
    try:
        app(args=arguments)
    except CondSimError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    run()
