"""What the commands share: exit status, log lines, progress, Ctrl-C and checks of output files."""

from __future__ import annotations

import functools
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from condsim.errors import CondSimError, InputError
from condsim.io import printable
from condsim.model.truncation import one_warning

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay


# Parameters that name a file to write.
_WRITES = "output json csv plot save predictions groups absent_output".split()
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # of click, or typer's copy of it
_TEXT = re.compile(r"-(\d|[^=]*\s)")  # begins with a dash and is no option
_WIDEST = 500  # columns of a terminal
_COLUMNS = "COLUMNS"


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Runs a command line and exits the process; what goes wrong is one line and status 2."""
    # SIGTERM and SIGHUP end a command as Ctrl-C does, with status 143 and 129.
    _tame_terminal()
    _exit_on_signals()
    try:
        with one_warning():
            try:
                status = app(args=arguments, standalone_mode=False)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
    except _UsageError as error:
        _fail(_usage(error, sys.argv[1:] if arguments is None else arguments))
    except CondSimError as error:
        _fail(str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        _discard(sys.stdout)
        _fail(f"{where}{error.strerror or error}.")
    except UnicodeEncodeError as error:
        _fail(f"A file or name cannot hold {error.object[error.start]!a} in {error.encoding}.")
    except RecursionError:
        _fail("The input is nested too deeply. Give one that is flatter.")
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _usage(error: Any, arguments: list[str]) -> str:  # noqa: ANN401  (a class of typer's)
    """A wrong use of the command line as one line; "" where the help was shown instead."""
    told = " ".join(error.format_message().split()).replace("Value error, ", "")
    message = re.sub(r"(?<=[^.?])\Z", ".", told)
    text = next((one for one in arguments if _TEXT.match(one)), None)
    if hasattr(error, "possibilities") and text is not None:
        return f"{message} Put -- before texts that begin with a dash: -- {text!r} …"
    return f"{message} See '{error.ctx.command_path} --help'." if message else ""


def _tame_terminal() -> None:
    columns = os.environ.get(_COLUMNS, "")
    if columns.isdecimal() and len(columns) > 3:  # rich lays out as many
        os.environ[_COLUMNS] = str(_WIDEST)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _exit_on_signals() -> None:
    with suppress(ValueError):  # in a thread
        for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
            if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores one
                signal.signal(number, lambda sent, _: sys.exit(128 + sent))


def _fail(message: str) -> None:
    """Exits with a line on stderr; characters that steer a terminal are shown, not sent."""
    try:
        sys.stderr.write(f"error: {printable(message)}\n" if message else "")
        sys.stderr.flush()
    except (OSError, AttributeError):  # full, or closed from the start
        _discard(sys.stderr)
    sys.exit(2)


def _discard(stream: TextIO | None) -> None:
    """Lets go of what a stream holds: it cannot be written, and would fail again at the exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]


def guard(app: typer.Typer) -> None:
    """Has each command refuse options that write over a file that another reads or writes."""
    for command in app.registered_commands:
        if command.callback is not None and not hasattr(command.callback, "__wrapped__"):
            command.callback = _checked(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            guard(group.typer_instance)


def _checked(command: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(command)
    def run(*positional: object, **options: object) -> object:
        _check_files(options)
        return command(*positional, **options)

    return run


def _check_files(options: Mapping[str, object]) -> None:
    """Refuses an option that writes what another reads or writes."""
    writes = {name: path for name in _WRITES if isinstance(path := options.get(name), Path)}
    others = [
        (name, Path(one))
        for name, value in options.items()
        for one in (value if isinstance(value, list) else [value])
        if isinstance(one, Path | str) and one
    ]
    for name, path in others:
        # An empty name has become that of this folder.
        if path == Path() and isinstance(options[name], Path) and "" in sys.argv:
            what = _option(name) if _option(name) in sys.argv else f"The {name}"
            raise InputError(f"{what} is empty; give the name of a file.")
    for name, output in writes.items():
        for other, path in others:
            if other != name and _same_file(output, path, both=other in writes):
                twice = f"written as {_option(other)} too"
                what = twice if other in writes else "the input itself"
                raise InputError(f"{output} is {what}. Give another {_option(name)}.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _same_file(one: Path, other: Path, *, both: bool) -> bool:
    with suppress(OSError, ValueError):
        if one.exists() and other.exists():
            return one.is_file() and one.samefile(other)
        return both and one.resolve() == other.resolve()
    return False


@contextmanager
def long_work(
    *,
    log: str | None = "condsim",  # the logger whose INFO lines are shown; None shows warnings only
    # What Ctrl-C prints after "Stopped."
    resume: str | Callable[[], str] = "The same command goes on from here.",
) -> Iterator[ProgressDisplay]:
    """Shows log lines and progress on stderr; Ctrl-C ends the command with status 130."""
    from condsim.console import ProgressDisplay, log_beside

    with ProgressDisplay() as progress:
        log_beside(progress)
        if log is not None:
            logging.getLogger(log).setLevel(logging.INFO)
        try:
            yield progress
        except KeyboardInterrupt:
            progress.close()
            typer.echo(f"Stopped. {resume if isinstance(resume, str) else resume()}", err=True)
            raise typer.Exit(130) from None


def check_outputs(**options: Path | None) -> None:
    """Refuses files that cannot be written; the names are those of the options."""
    for name, path in options.items():
        if path is None:
            continue
        option = _option(name)
        if not path.parent.is_dir():
            raise InputError(f"{option}: the folder {path.parent} does not exist; make it first.")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"{option}: {path} cannot be written; name another file.")
        if path.is_dir():
            raise InputError(f"{option}: {path} is a folder; give the name of a file to write.")
