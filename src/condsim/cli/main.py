"""The ``condsim`` command: the module of each subcommand is imported when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from condsim import __version__
from condsim.cli.running import guard, run_app

if TYPE_CHECKING:
    app: typer.Typer

_COMMANDS = (
    "score explain encode search cluster dedupe threshold serve train adapt average sweep "
    "evaluate predict prompt export info robustness"
).split()
_GROUPS = {
    "applicability": "Predict whether a condition applies to two sentences.",
    "build": "Build your own data set for conditional similarity.",
    "contexts": "Learn similarity from raw text, without labels.",
    "data": "Check data files.",
    "index": "Keep texts to search them under any condition.",
}

# The packages beside the core bring their own commands, imported by name only.
_MODULES = {"contexts": "condsim.contexts.cli"}


def __getattr__(name: str) -> typer.Typer:
    """Makes ``app``, the command line with all commands, on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _app_of((*_COMMANDS, *_GROUPS))
    return made


def _app_of(names: Iterable[str]) -> typer.Typer:
    """Makes a command line with some of the commands."""
    app = typer.Typer(
        name="condsim",
        help="How similar are these two texts, with respect to X?",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_start)  # makes a group of one command a group
    for name in names:
        module = importlib.import_module(_MODULES.get(name, f"condsim.cli.{name}"))
        if name in _GROUPS:
            app.add_typer(module.app, name=name, help=_GROUPS[name])
        else:
            app.command()(getattr(module, name))
    guard(app)
    return app


def _start(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=lambda asked: _show_version(asked),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Holds the options of the command itself."""


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"condsim {__version__}")
        raise typer.Exit


def run(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits the process.

    Exit status: 0 done, 2 the input breaks a rule (one line on stderr), 130 interrupted.
    """
    asked = (sys.argv[1:] if arguments is None else arguments)[:1]
    known = (*_COMMANDS, *_GROUPS)
    run_app(_app_of(asked if asked and asked[0] in known else known), arguments)
