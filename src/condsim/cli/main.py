"""The ``condsim`` command; the module of a subcommand is imported when it runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from condsim import __version__
from condsim.cli.command import guard
from condsim.cli.process import run_app

if TYPE_CHECKING:
    app: typer.Typer

_PANELS = {
    "Score": ("score", "explain", "encode", "predict", "prompt"),
    "Collections": ("search", "cluster", "dedupe", "index", "serve"),
    "Measure": ("evaluate", "threshold", "robustness", "data"),
    "Train": ("adapt", "train", "sweep", "average", "export", "applicability", "info"),
    "Build data": ("build", "contexts"),
}
_COMMANDS = [name for names in _PANELS.values() for name in names]
_GROUPS = {
    "applicability": "Predict whether a condition applies to two sentences.",
    "build": "Build your own data set for conditional similarity.",
    "contexts": "Learn similarity from raw text, without labels.",
    "data": "Check data files.",
    "index": "Store texts to search them under any condition.",
}

# Modules of other names than their commands; contexts, next to the core, is imported by name only.
_MODULES = {
    "average": "condsim.cli.train",
    "contexts": "condsim.contexts.cli",
    "export": "condsim.cli.train",
    "search": "condsim.cli.index",
    "sweep": "condsim.cli.train",
}


def __getattr__(name: str) -> typer.Typer:
    """Build ``app``, the command line with all commands, on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = app = _app_of(_COMMANDS)
    return app


def _app_of(names: Iterable[str]) -> typer.Typer:
    """Build a command line with some of the commands."""
    app = typer.Typer(
        name="condsim",
        help="How similar are these two texts, with respect to X?",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # Without a callback, a single command would not be a subcommand.
    app.callback()(_start)
    panels = {name: panel for panel, members in _PANELS.items() for name in members}
    for name in names:
        module = importlib.import_module(_MODULES.get(name, f"condsim.cli.{name}"))
        if name in _GROUPS:
            group: typer.Typer = module.app
            app.add_typer(group, name=name, help=_GROUPS[name], rich_help_panel=panels[name])
        else:
            app.command(rich_help_panel=panels[name])(getattr(module, name))
    guard(app)
    return app


def _start(
    _version: Annotated[
        bool,
        Option(
            "--version",
            help="Show the version and exit.",
            callback=lambda requested: _show_version(requested),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Hold the options of the command itself."""


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"condsim {__version__}")
        raise typer.Exit


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit the process.

    Exit status: 0 done, 2 the input breaks a rule (one line on stderr), 130 interrupted.
    """
    command = (sys.argv[1:] if arguments is None else arguments)[:1]
    names = command if command and command[0] in _COMMANDS else _COMMANDS
    run_app(_app_of(names), arguments)
