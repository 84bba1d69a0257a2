"""The ``condsim`` command; the module of a subcommand is imported when it runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from condsim import __version__
from condsim.cli.command import guard
from condsim.cli.process import run_app
from condsim.errors import MissingExtraError

if TYPE_CHECKING:
    app: typer.Typer

_PANELS = {
    "Score": ("score", "explain", "encode", "predict", "prompt"),
    "Collections": ("search", "cluster", "dedupe", "match", "verdict", "index", "serve"),
    "Teach": ("label", "learn", "assign"),
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

# Groups with commands of companion packages, and their module in the core; the extras that
# install the packages have the names of the groups.
_COMPANIONS = {"build": "condsim.cli.build", "contexts": None}
# Commands of companion packages, and the extras that install these.
_COMPANION_COMMANDS = {"prompt": "llm", "sweep": "sweep"}
ENTRY_POINTS = "condsim.commands"

# Functions of commands, where module or function have another name than the command.
_FUNCTIONS = {
    "adapt": "adapt.adapt_command",
    "assign": "learn.assign",
    "average": "train.average",
    "cluster": "cluster.cluster_command",
    "evaluate": "evaluate.evaluate_command",
    "export": "train.export",
    "learn": "learn.learn_command",
    "robustness": "robustness.robustness_command",
    "search": "index.search",
    "verdict": "verdict.verdict_command",
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
        if name in _COMPANIONS:
            app.add_typer(_group_with_others(name), name=name, rich_help_panel=panels[name])
            continue
        if name in _COMPANION_COMMANDS:
            _add_companion_command(app, name, panel=panels[name])
            continue
        module_name, _, function = _FUNCTIONS.get(name, f"{name}.{name}").partition(".")
        module = importlib.import_module(f"condsim.cli.{module_name}")
        if name in _GROUPS:
            group: typer.Typer = module.app
            app.add_typer(group, name=name, help=_GROUPS[name], rich_help_panel=panels[name])
        else:
            app.command(name, rich_help_panel=panels[name])(getattr(module, function))
    guard(app)
    return app


def _add_companion_command(app: typer.Typer, name: str, *, panel: str) -> None:
    """Add a command of a companion package, or one that says what installs it."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        app.command(name, rich_help_panel=panel)(entry.load())
        return
    extra = _COMPANION_COMMANDS[name]

    def missing(_words: Annotated[list[str] | None, Argument(hidden=True)] = None) -> None:
        raise MissingExtraError.of(f"the command 'condsim {name}'", extra=extra)

    missing.__doc__ = f"Not installed: pip install 'condsim[{extra}]'."
    takes_all = {"ignore_unknown_options": True}
    app.command(name, rich_help_panel=panel, context_settings=takes_all)(missing)


def _group_with_others(name: str) -> typer.Typer:
    """Build a group from its commands in the core and in companion packages."""
    # The search through all installed packages takes long; most commands do without it.
    from importlib.metadata import entry_points

    entries = entry_points(group=ENTRY_POINTS, name=name)
    about = _GROUPS[name] if entries else f"{_GROUPS[name]} More: pip install 'condsim[{name}]'."
    group = typer.Typer(
        help=about,
        cls=TyperGroup if entries else _IncompleteGroup,
        no_args_is_help=True,
        rich_markup_mode="markdown",
    )
    if (core := _COMPANIONS[name]) is not None:
        group.add_typer(importlib.import_module(core).app)
    for entry in entries:
        group.add_typer(entry.load())
    return group


class _IncompleteGroup(TyperGroup):
    """A group whose other commands are in a package that is not installed."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401  (typer's click)
        """Find a command; MissingExtraError says what installs the others."""
        command = super().get_command(ctx, cmd_name)
        if command is None:
            missing = f"the command 'condsim {self.name} {cmd_name}'"
            raise MissingExtraError.of(missing, extra=str(self.name))
        return command


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
