"""Exit status, signals, progress and output files of the commands."""

from __future__ import annotations

import functools
import inspect
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from condsim.cli.streams import OUTPUT_PARAMETERS, Command, renamed, standard_streams
from condsim.errors import CondSimError, InputError
from condsim.io import printable
from condsim.model.chunking import collect_truncations
from condsim.model.legibility import collect_unread

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay

# The base class of click, or of typer's copy of it.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
# An argument that begins with a dash and is not an option.
_DASHED_TEXT = re.compile(r"-(\d|[^=]*\s)")
_MAX_TERMINAL_COLUMNS = 500
_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--quiet", help="Print no progress and no notes, only errors.")
    ],
)


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Run a command line and exit the process; an error is one line and status 2.

    SIGTERM and SIGHUP end a command as Ctrl-C does, with status 143 and 129.
    """
    _prepare_streams()
    _show_file_forms()
    _exit_on_signals()
    try:
        with collect_truncations(), collect_unread(log=True):
            try:
                status = app(args=arguments, standalone_mode=False)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
    except _UsageError as error:
        _fail(_usage_message(error, sys.argv[1:] if arguments is None else arguments))
    except CondSimError as error:
        _fail(str(error))
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
    """Limit the width of tables, and write characters that a stream lacks as escapes."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) > 3:
        os.environ["COLUMNS"] = str(_MAX_TERMINAL_COLUMNS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _show_file_forms() -> None:
    """Show on stderr in which form a file is read, also where nothing else is logged."""
    logger = logging.getLogger("condsim.data.text")
    logger.setLevel(logging.INFO)
    logger.addFilter(_name_stream)
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.INFO)


def _name_stream(record: logging.LogRecord) -> bool:
    record.msg, record.args = renamed(record.getMessage()), None
    return True


def _exit_on_signals() -> None:
    # Handlers can be set in the main thread only.
    with suppress(ValueError):
        for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
            # A signal that nohup ignores stays ignored.
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, lambda received, _: sys.exit(128 + received))


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


def guard(app: typer.Typer) -> None:
    """Give each command --quiet and ``-`` for standard streams, and protect its input files."""
    for command in app.registered_commands:
        command.cls = Command
        if command.callback is not None and not hasattr(command.callback, "__wrapped__"):
            command.callback = _guarded(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            guard(group.typer_instance)


def _guarded(command: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(command)
    def run(*, quiet: bool, **options: object) -> object:
        _check_files(options)
        with ExitStack() as stack:
            if quiet:
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(redirect_stderr(nowhere))
                stack.enter_context(collect_truncations(warn=False))
                stack.enter_context(collect_unread(log=False))
            return command(**stack.enter_context(standard_streams(command.__name__, options)))

    # Typer reads the options from the signature.
    signature = inspect.signature(command, eval_str=True)
    parameters = [*signature.parameters.values(), _QUIET]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, _QUIET.name: _QUIET.annotation}
    return run


def _check_files(options: Mapping[str, object]) -> None:
    """Reject an option that writes what another reads or writes."""
    outputs = {
        name: path for name in OUTPUT_PARAMETERS if isinstance(path := options.get(name), Path)
    }
    paths: list[tuple[str, Path]] = []
    for name, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Path | str) and item:
                paths.append((name, Path(item)))
    for name, path in paths:
        # Path("") is the current folder.
        if path == Path() and isinstance(options[name], Path) and "" in sys.argv:
            subject = _option(name) if _option(name) in sys.argv else f"The {name}"
            raise InputError(f"{subject} is empty; give the name of a file.")
    for name, output in outputs.items():
        for other_name, path in paths:
            if other_name != name and _same_file(output, path, both=other_name in outputs):
                twice = f"written as {_option(other_name)} too"
                role = twice if other_name in outputs else "the input itself"
                raise InputError(f"{output} is {role}. Give another {_option(name)}.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _same_file(first: Path, second: Path, *, both: bool) -> bool:
    with suppress(OSError, ValueError, RuntimeError):
        if first.exists() and second.exists():
            return first.is_file() and first.samefile(second)
        return both and first.resolve() == second.resolve()
    return False


@contextmanager
def long_work(
    *,
    log: str | None = "condsim",
    resume: str | Callable[[], str] = "The same command continues from here.",
) -> Iterator[ProgressDisplay]:
    """Show log lines and progress on stderr; Ctrl-C ends the command with status 130.

    Args:
        log: The logger whose INFO lines are shown; None shows warnings only.
        resume: Text that Ctrl-C prints after "Stopped."
    """
    from condsim.console import ProgressDisplay, log_above

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
        typer.echo(renamed(line), err=True)


def check_outputs(**options: Path | None) -> None:
    """Reject files that cannot be written; the names are those of the options."""
    for name, path in options.items():
        if path is None:
            continue
        option = _option(name)
        try:
            has_folder, writable = path.parent.is_dir(), path if path.exists() else path.parent
        except OSError as error:
            raise InputError(f"{option}: {path} cannot be written ({error.strerror}).") from None
        if not has_folder:
            raise InputError(f"{option}: the folder {path.parent} does not exist; make it first.")
        if not os.access(writable, os.W_OK):
            raise InputError(f"{option}: {path} cannot be written; name another file.")
        if path.is_dir():
            raise InputError(f"{option}: {path} is a folder; give the name of a file to write.")
