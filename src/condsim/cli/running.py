"""What the commands share: exit status, log lines, progress, Ctrl-C and checks of output files."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from condsim.cutting import one_warning
from condsim.errors import CondSimError, InputError

if TYPE_CHECKING:
    from condsim.progress import ProgressDisplay


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Runs a command line and exits the process; an error of condsim is one line and status 2."""
    try:
        with one_warning():
            app(args=arguments)
    except CondSimError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except UnicodeEncodeError as error:
        missing = ascii(error.object[error.start])
        sys.stderr.write(
            f"error: The output is in {sys.stdout.encoding}, which has no {missing}. Set "
            "PYTHONIOENCODING to utf-8, or write to a file with --output.\n"
        )
        sys.exit(2)


@contextmanager
def long_work(
    *,
    log: str | None = "condsim",
    resume: str | Callable[[], str] = "The same command goes on from here.",
) -> Iterator[ProgressDisplay]:
    """Shows log lines and progress on stderr; Ctrl-C ends the command with status 130.

    Args:
        log: The logger whose INFO lines are shown; None shows warnings only.
        resume: What Ctrl-C prints after "Stopped.", or a function that gives it.
    """
    from condsim.progress import ProgressDisplay, log_beside

    with ProgressDisplay() as progress:
        log_beside(progress)
        if log is not None:
            logging.getLogger(log).setLevel(logging.INFO)
        try:
            yield progress
        except KeyboardInterrupt:
            progress.clear()
            typer.echo(f"Stopped. {resume if isinstance(resume, str) else resume()}", err=True)
            raise typer.Exit(130) from None


def check_output(option: str, path: Path | None) -> None:
    """Refuses a file that cannot be written; ``option`` names it, such as ``--json``."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise InputError(f"{option}: the folder {path.parent} does not exist; make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: {path} cannot be written; name another file.")
    if path.is_dir():
        raise InputError(f"{option}: {path} is a folder; give the name of a file to write.")
