"""Process of a command: standard streams in place of ``-``, exit status, signals and progress."""

from __future__ import annotations

import functools
import inspect
import io
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from typer import Option
from typer.core import TyperCommand

from condsim.errors import CondSimError, InputError, one_line, printable
from condsim.model.inputs import collect_truncations
from condsim.model.legibility import collect_unread

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay

OUTPUT_PARAMETERS = "output json csv plot save predictions groups review absent_output".split()
"""Parameters that name a file to write."""
# Arguments that hold rows; --file and --data name them too.
_FILE_ARGUMENTS = ("file", "files", "data", "labelled", "captions")
_FILE_OPTIONS = ("--file", "--data")
# Older names of options.
_OPTION_ALIASES = dict.fromkeys(("--text", "--text-column", "--caption-column"), "--column")
# Formats of files on standard output, by option and, of --output, by command.
_SUFFIXES = {"json": ".json", "csv": ".csv", "predictions": ".csv", "plot": ".png", "save": ".json"}
_OUTPUT_SUFFIXES = {
    **{"predict": ".json", "explain": ".jsonl", "encode": ".npy"},
    **dict.fromkeys(("score", "cluster", "dedupe"), ".tsv"),
    **dict.fromkeys(
        ("criteria", "weak", "counter_edits", "teach", "answers", "filter_pairs"), ".csv"
    ),
}
_STANDARD = Path("-")
# The streams that temporary files stand for, by path.
_stream_names: dict[str, str] = {}

# The base class of click, or of typer's copy of it.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
# An argument that begins with a dash and is not an option.
_DASHED_TEXT = re.compile(r"-(\d|[^=]*\s)")
_MAX_TERMINAL_COLUMNS = "500"
_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, Option("--quiet", help="Print no progress and no notes, only errors.")
    ],
)


# The process


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Run a command line and exit the process; an error is one line and status 2.

    SIGTERM and SIGHUP end a command as Ctrl-C does, with status 143 and 129.
    """
    _prepare_streams()
    try:
        with _exit_on_signals(), collect_truncations(), collect_unread(log=True):
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
    """Limit the width of tables, escape what a stream lacks, and log the forms of files."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) > 3:
        os.environ["COLUMNS"] = _MAX_TERMINAL_COLUMNS
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logger = logging.getLogger("condsim.data.text")
    logger.setLevel(logging.INFO)
    logger.addFilter(_name_stream)
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.INFO)


def _name_stream(record: logging.LogRecord) -> bool:
    record.msg, record.args = with_stream_names(record.getMessage()), None
    return True


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Exit with the status of a signal, also where a library replaces the exit by its own error.

    ONNX Runtime does so while it is imported.
    """
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


# Arguments and files of a command


def guard(app: typer.Typer) -> None:
    """Give each command --quiet and ``-`` for standard streams, and protect its input files."""
    for command in app.registered_commands:
        command.cls = Command
        if command.callback is not None and not hasattr(command.callback, "__wrapped__"):
            command.callback = _wrap_command(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            guard(group.typer_instance)


def _wrap_command(command: Callable[..., object]) -> Callable[..., object]:
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
    paths: list[tuple[str, Path]] = []
    for name, value in options.items():
        # Path("") is the current folder.
        if value == Path() and "" in sys.argv:
            subject = _option(name) if _option(name) in sys.argv else f"The {name}"
            raise InputError(f"{subject} is empty; give the name of a file.")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Path | str) and item:
                paths.append((name, Path(item)))
    outputs = {
        name: path for name in OUTPUT_PARAMETERS if isinstance(path := options.get(name), Path)
    }
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


class Command(TyperCommand):
    """A command that takes its file by --file and --data too, and --json without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  (typer's click)
        """Parse the files as arguments, at the end, and a bare --json as one of ``-``."""
        options = {name for parameter in self.params for name in parameter.opts}
        # The name of an argument is among its options, too.
        files = _FILE_OPTIONS if options.intersection(_FILE_ARGUMENTS) else ()
        words, usual, named, conditions = deque(args), list[str](), list[str](), 0
        while words:
            word = words.popleft()
            name, equals, value = word.partition("=")
            conditions += name == "--condition"
            if word == "--":
                usual += [word, *words]
                words.clear()
            elif name in files and name not in options and (equals or words):
                named.append(value if equals else words.popleft())
            elif word == "--json" and (not words or (words[0].startswith("-") and words[0] != "-")):
                usual.append("--json=-")
            elif name not in options and _OPTION_ALIASES.get(name) in options:
                usual.append(f"{_OPTION_ALIASES[name]}{equals}{value}")
            else:
                usual.append(word)
        # Other commands take several conditions; here all but the last would be lost.
        if conditions > 1 and any(
            "--condition" in parameter.opts and not getattr(parameter, "multiple", True)
            for parameter in self.params
        ):
            raise InputError(f"--condition: give one here; got {conditions}.")
        return super().parse_args(ctx, usual + named)


# Standard streams in place of files


@contextmanager
def standard_streams(command: str, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the options of a command with temporary files in place of ``-``."""
    replaced = dict(options)
    with ExitStack() as stack:
        for name, value in options.items():
            # One pair after the other is scored as it comes.
            if not _has_standard(value, name) or (command == "score" and name != "output"):
                continue
            if name not in OUTPUT_PARAMETERS:
                path = stack.enter_context(_input_file())
                replaced[name] = [path] if isinstance(value, list) else type(value)(path)
                continue
            # Commands without a format of --output write folders.
            suffix = (
                _OUTPUT_SUFFIXES.get(command) if name == "output" else _SUFFIXES.get(name, ".tsv")
            )
            if suffix is not None:
                replaced[name] = stack.enter_context(_output_file(suffix, hide=name == "json"))
        try:
            yield replaced
        except CondSimError as error:
            error.args = (with_stream_names(str(error)), *error.args[1:])
            raise


def _has_standard(value: object, name: str) -> bool:
    # A file of pairs may take the place of the first text.
    if name == "sentence1":
        return value == "-"
    return value == _STANDARD or (isinstance(value, list) and _STANDARD in value)


def with_stream_names(text: str) -> str:
    """Name the streams in a message in place of their temporary files."""
    for path, name in _stream_names.items():
        text = text.replace(path, name)
    return text


def open_stream(stream: TextIO | None, name: str) -> TextIO:
    """Return standard input or output; InputError if it is closed."""
    if stream is None:
        raise InputError(f"Standard {name} is closed; give the name of a file.")
    return stream


@contextmanager
def _stream_file(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="condsim-") as folder:
        path = Path(folder, name)
        _stream_names[str(path)] = path.stem
        try:
            yield path
        finally:
            del _stream_names[str(path)]


@contextmanager
def _input_file() -> Iterator[Path]:
    """Copy standard input to a file whose suffix is its format."""
    stdin = open_stream(sys.stdin, "input")
    if "standard input" in _stream_names.values():
        raise InputError("Standard input can be read for one option only.")
    head = stdin.buffer.read(64)
    # What may come before the first character in UTF-8 and UTF-16.
    text = head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")
    # The dialect of a table is detected, and so is an Excel workbook.
    suffix = ".jsonl" if text.startswith(b"{") else ".tsv"
    if head.startswith(b"PAR1"):
        suffix = ".parquet"
    with _stream_file(f"standard input{suffix}") as path:
        with path.open("wb") as copy:
            copy.write(head)
            shutil.copyfileobj(stdin.buffer, copy)
        yield path


@contextmanager
def _output_file(suffix: str, *, hide: bool) -> Iterator[Path]:
    """Print a file when the command that wrote it has ended without an error.

    What else the command prints is on stderr, or with ``hide`` nowhere.
    """
    stdout = open_stream(sys.stdout, "output")
    with _stream_file(f"standard output{suffix}") as path:
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,  # noqa: PTH123
            redirect_stdout(nowhere if hide else sys.stderr),
        ):
            yield path
        stdout.flush()
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, stdout.buffer)
        stdout.flush()


# What commands call


@contextmanager
def long_work(
    *,
    log: str | None = "condsim",
    resume: str | Callable[[], str] = "The same command continues from here.",
) -> Iterator[ProgressDisplay]:
    """Show INFO lines of a logger and progress on stderr; Ctrl-C ends the command with status 130.

    Ctrl-C prints ``resume`` after "Stopped."
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
        typer.echo(with_stream_names(line), err=True)


def print_result(line: str) -> None:
    """Print what a command wrote."""
    typer.echo(with_stream_names(line))


def check_outputs(**options: Path | None) -> None:
    """Reject files that cannot be written; the names are those of the options."""
    for name, path in options.items():
        if path is None:
            continue
        option = _option(name)
        with one_line(f"{option}: {path} cannot be written", OSError):
            has_folder, writable = path.parent.is_dir(), path if path.exists() else path.parent
        if not has_folder:
            fault = f"the folder {path.parent} does not exist; make it first"
        elif not os.access(writable, os.W_OK):
            fault = f"{path} cannot be written; name another file"
        elif path.is_dir():
            fault = f"{path} is a folder; give the name of a file to write"
        else:
            continue
        raise InputError(f"{option}: {fault}.")
