"""Standard input and output in place of files: ``-`` among the options of any command."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from condsim.errors import CondSimError, InputError

OUTPUT_PARAMETERS = "output json csv plot save predictions groups review absent_output".split()
"""Parameters that name a file to write."""

# Arguments that hold rows; --file and --data name them too.
_FILE_ARGUMENTS = ("file", "files", "data", "labelled", "captions")
_FILE_OPTIONS = ("--file", "--data")
# Older names of options.
_OPTION_ALIASES = {"--text": "--column"}
# Formats of files on standard output, of --output by command: others write folders.
_SUFFIXES = {"json": ".json", "csv": ".csv", "predictions": ".csv", "plot": ".png", "save": ".json"}
_OUTPUT_SUFFIXES = {"predict": ".json", "explain": ".jsonl", "encode": ".npy"}
_TABLE_COMMANDS = ("score", "cluster", "dedupe")
_CSV_COMMANDS = ("criteria", "weak", "counter_edits", "teach", "answers", "filter_pairs")
_STANDARD = Path("-")
# The streams that temporary files stand for, by path.
_stream_names: dict[str, str] = {}


class Command(TyperCommand):
    """A command that takes its file by --file and --data too, and --json without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  (typer's click)
        """Parse the arguments in their usual form."""
        options = {name for parameter in self.params for name in parameter.opts}
        # The name of an argument is among its options, too.
        files = _FILE_OPTIONS if options.intersection(_FILE_ARGUMENTS) else ()
        return super().parse_args(ctx, _usual_form(args, options, files))


def _usual_form(arguments: Sequence[str], options: set[str], files: Sequence[str]) -> list[str]:
    """Move files named by options to the end, as arguments; write ``-`` after a bare --json."""
    words, usual, named = deque(arguments), list[str](), list[str]()
    while words:
        word = words.popleft()
        name, equals, value = word.partition("=")
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
    return usual + named


def renamed(text: str) -> str:
    """Name the streams in a message in place of their temporary files."""
    for path, name in _stream_names.items():
        text = text.replace(path, name)
    return text


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
            elif suffix := _output_suffix(command, name):
                replaced[name] = stack.enter_context(_output_file(suffix, hide=name == "json"))
        try:
            yield replaced
        except CondSimError as error:
            error.args = (renamed(str(error)), *error.args[1:])
            raise


def _has_standard(value: object, name: str) -> bool:
    # A file of pairs may take the place of the first text.
    if name == "sentence1":
        return value == "-"
    return value == _STANDARD or (isinstance(value, list) and _STANDARD in value)


def _output_suffix(command: str, name: str) -> str | None:
    """Return the format of an output on a stream; None if it is a folder."""
    if name != "output":
        return _SUFFIXES.get(name, ".tsv")
    if command in _CSV_COMMANDS:
        return ".csv"
    return ".tsv" if command in _TABLE_COMMANDS else _OUTPUT_SUFFIXES.get(command)


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
    if sys.stdin is None:
        raise InputError("Standard input is closed; give the name of a file.")
    if any(name == "standard input" for name in _stream_names.values()):
        raise InputError("Standard input can be read for one option only.")
    head = sys.stdin.buffer.read(64)
    with _stream_file(f"standard input{_input_suffix(head)}") as path:
        with path.open("wb") as copy:
            copy.write(head)
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path


def _input_suffix(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return ".parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    # The dialect of a table is detected, and so is an Excel workbook.
    return ".jsonl" if text.startswith(b"{") else ".tsv"


@contextmanager
def _output_file(suffix: str, *, hide: bool) -> Iterator[Path]:
    """Print a file when the command that wrote it has ended without an error.

    Args:
        hide: Whether to drop what the command prints, instead of printing it on stderr.
    """
    if sys.stdout is None:
        raise InputError("Standard output is closed; give the name of a file.")
    stdout = sys.stdout
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
