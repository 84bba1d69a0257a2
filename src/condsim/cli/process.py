"""Process of a command: exit status, signals, progress, and the lines that it prints."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

import typer

from condsim.cli.command import STATUS_OF_CLOSED_PIPE
from condsim.console import ProgressDisplay, log_above
from condsim.errors import CondSimError, printable, with_given_names
from condsim.model.inputs import collect_truncations
from condsim.model.legibility import collect_unread

# The base class of click, or of typer's copy of it.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
# An argument that begins with a dash and is not an option.
_DASHED_TEXT = re.compile(r"-(\d|[^=]*\s)")
_MAX_TERMINAL_COLUMNS = "500"


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Run a command line and exit the process; an error is one line and status 2.

    SIGTERM and SIGHUP end a command as Ctrl-C does, with status 143 and 129.
    """
    _prepare_streams()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with _exit_on_signals(), collect_truncations(), collect_unread(log=True):
            try:
                status = app(args=words, standalone_mode=False)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
    except _UsageError as error:
        _fail(_usage_message(error, words))
    except CondSimError as error:
        _fail(str(error))
    except BrokenPipeError:
        _discard(sys.stdout)
        sys.exit(STATUS_OF_CLOSED_PIPE)
    except OSError as error:
        file = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        _discard(sys.stdout)
        _fail(f"{file}{error.strerror or error}.")
    except UnicodeEncodeError as error:
        _fail(f"A file or name cannot hold {error.object[error.start]!a} in {error.encoding}.")
    except RecursionError:
        _fail("The input is nested too deeply. Give one that is flatter.")
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _usage_message(error: Any, arguments: list[str]) -> str:  # noqa: ANN401  (a class of typer's)
    """Return a usage error as one line; "" where the help was printed instead."""
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    message = re.sub(r"(?<=[^.?])\Z", ".", message)
    text = next((argument for argument in arguments if _DASHED_TEXT.match(argument)), None)
    if hasattr(error, "possibilities") and text is not None:
        return f"{message} Put -- before texts that begin with a dash: -- {text!r} …"
    return f"{message} See '{error.ctx.command_path} --help'." if message else ""


def _prepare_streams() -> None:
    """Limit the width of tables, escape what a stream lacks, and log the forms of files."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) > 3:
        os.environ["COLUMNS"] = _MAX_TERMINAL_COLUMNS
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logger = logging.getLogger("condsim.data.text")
    logger.setLevel(logging.INFO)
    logger.addFilter(_name_files)
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.INFO)


def _name_files(record: logging.LogRecord) -> bool:
    record.msg, record.args = with_given_names(record.getMessage()), None
    return True


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Exit with the status of a signal, also where a library replaces the exit by its own error."""
    received = []

    def end(number: int, _: FrameType | None) -> None:
        received.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    # Handlers can be set in the main thread only.
    with suppress(ValueError):
        for number in {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
            # A signal that nohup ignores stays ignored.
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, end)
    try:
        yield
    except (Exception, KeyboardInterrupt):
        if received:
            sys.exit(128 + received[0])
        raise


def _fail(message: str) -> None:
    """Exit with a line on stderr, in which control characters are visible."""
    try:
        sys.stderr.write(f"error: {printable(message)}\n" if message else "")
        sys.stderr.flush()
    except (OSError, AttributeError):
        # The stream is full, or was closed from the start.
        _discard(sys.stderr)
    sys.exit(2)


def _discard(stream: TextIO | None) -> None:
    """Drop the buffer of a stream that cannot be written, which would fail again at the exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]


@contextmanager
def long_work(
    *,
    log: str | None = "condsim",
    resume: str | Callable[[], str] = "The same command continues from here.",
) -> Iterator[ProgressDisplay]:
    """Show INFO lines of a logger and progress on stderr; Ctrl-C ends the command with status 130.

    Ctrl-C prints ``resume`` after "Stopped."
    """
    with ProgressDisplay() as progress:
        log_above(progress)
        if log is not None:
            logging.getLogger(log).setLevel(logging.INFO)
        try:
            yield progress
        except KeyboardInterrupt:
            progress.close()
            typer.echo(f"Stopped. {resume if isinstance(resume, str) else resume()}", err=True)
            raise typer.Exit(130) from None


def print_note(line: str) -> None:
    """Print a line on stderr, unless it is empty."""
    if line:
        typer.echo(with_given_names(line), err=True)


def print_result(line: str) -> None:
    """Print what a command wrote."""
    typer.echo(with_given_names(line))
