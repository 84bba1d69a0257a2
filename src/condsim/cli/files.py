"""Files that a command declares: marks on its options, checks, and ``-`` for standard streams."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from inspect import Parameter
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias, get_args

from condsim.errors import InputError, named_as, one_line

_STANDARD = "-"


class Output(NamedTuple):
    """Mark an option that names what the command writes.

    Attributes:
        suffix: Format of the file on standard output; None for a folder.
        alone: Print nothing else on standard output where the file goes there.
    """

    suffix: str | None
    alone: bool = False


class Input(NamedTuple):
    """Mark an option that names a file to read; every other `Path` is one, too.

    Attributes:
        streamed: True if the command reads ``-`` itself, row by row.
    """

    streamed: bool = False


FOLDER = Output(None)
"""Mark of an option that names a folder to write."""
Mark: TypeAlias = Input | Output


def declared_files(parameters: Iterable[Parameter]) -> dict[str, Mark]:
    """Read the marks on the parameters of a command."""
    marks: dict[str, Mark] = {}
    for parameter in parameters:
        kind, *metadata = get_args(parameter.annotation) or (parameter.annotation,)
        given = [mark for mark in metadata if isinstance(mark, Mark)]
        if given or Path in _members(kind):
            marks[parameter.name] = given[0] if given else Input()
    return marks


def _members(kind: object) -> list[object]:
    """Take apart a type such as ``list[Path] | None``."""
    return [kind, *chain.from_iterable(map(_members, get_args(kind)))]


def check_files(options: Mapping[str, object], marks: Mapping[str, Mark]) -> None:
    """Reject an output that cannot be written, or that another option reads or writes."""
    outputs = {
        name: Path(str(options[name]))
        for name, mark in marks.items()
        if isinstance(mark, Output) and options.get(name) is not None
    }
    for name, output in outputs.items():
        _check_alone(name, output, options, outputs)
    for name, output in outputs.items():
        mark = marks[name]
        if isinstance(mark, Output):
            _check_output(output, option=option_name(name), folder=mark.suffix is None)


def _check_alone(
    name: str, output: Path, options: Mapping[str, object], outputs: Mapping[str, Path]
) -> None:
    for other_name, value in options.items():
        is_output = other_name in outputs
        for item in value if isinstance(value, list) else [value]:
            if other_name == name or not isinstance(item, Path | str) or not item:
                continue
            if _same_file(output, Path(item), both=is_output):
                twice = f"written as {option_name(other_name)} too"
                role = twice if is_output else "the input itself"
                raise InputError(f"{output} is {role}. Give another {option_name(name)}.")


def _same_file(first: Path, second: Path, *, both: bool) -> bool:
    with suppress(OSError, ValueError, RuntimeError):
        if first.exists() and second.exists():
            return first.is_file() and first.samefile(second)
        return both and first.resolve() == second.resolve()
    return False


def _check_output(path: Path, *, option: str, folder: bool) -> None:
    """Reject a file or folder that cannot be written."""
    if str(path) == _STANDARD:
        if folder:
            raise InputError(f"{option}: a folder cannot go to standard output; give its name.")
        return
    with one_line(f"{option}: {path} cannot be written", OSError):
        exists, is_folder = path.exists(), path.is_dir()
        has_parent, nearest = path.parent.is_dir(), path if exists else path.parent
    if folder:
        fault = f"{path} is a file; give a folder" if exists and not is_folder else ""
    elif not has_parent:
        fault = f"the folder {path.parent} does not exist; make it first"
    elif not os.access(nearest, os.W_OK):
        fault = f"{path} cannot be written; name another file"
    else:
        fault = f"{path} is a folder; give the name of a file to write" if is_folder else ""
    if fault:
        raise InputError(f"{option}: {fault}.")


def option_name(parameter: str) -> str:
    """Write the name of a parameter as an option."""
    return f"--{parameter.strip('_').replace('_', '-')}"


@contextmanager
def standard_streams(
    options: Mapping[str, Any], marks: Mapping[str, Mark]
) -> Iterator[dict[str, Any]]:
    """Yield the options of a command with temporary files in place of ``-``."""
    replaced = dict(options)
    inputs = 0
    with ExitStack() as stack:
        for name, mark in marks.items():
            value = options[name]
            values = value if isinstance(value, list) else [value]
            if _STANDARD not in map(str, values):
                continue
            if isinstance(mark, Output):
                replaced[name] = stack.enter_context(_output_file(mark))
            elif not mark.streamed:
                inputs += 1
                if inputs > 1:
                    raise InputError("Standard input can be read for one option only.")
                path = stack.enter_context(_input_file())
                replaced[name] = [path] if isinstance(value, list) else type(value)(path)
        yield replaced


def open_stream(stream: TextIO | None, name: str) -> TextIO:
    """Return standard input or output; InputError if it is closed."""
    if stream is None:
        raise InputError(f"Standard {name} is closed; give the name of a file.")
    return stream


@contextmanager
def _stream_file(name: str, suffix: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="condsim-") as folder:
        path = Path(folder, f"{name}{suffix}")
        with named_as(path, name):
            yield path


@contextmanager
def _input_file() -> Iterator[Path]:
    """Copy standard input to a file whose suffix is its format."""
    stdin = open_stream(sys.stdin, "input")
    head = stdin.buffer.read(64)
    # What may come before the first character in UTF-8 and UTF-16.
    text = head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")
    # The dialect of a table is detected, and so is an Excel workbook.
    suffix = ".jsonl" if text.startswith((b"{", b"[")) else ".tsv"
    if head.startswith(b"PAR1"):
        suffix = ".parquet"
    with _stream_file("standard input", suffix) as path:
        with path.open("wb") as copy:
            copy.write(head)
            shutil.copyfileobj(stdin.buffer, copy)
        yield path


@contextmanager
def _output_file(mark: Output) -> Iterator[Path]:
    """Print a file when the command that wrote it has ended without an error."""
    stdout = open_stream(sys.stdout, "output")
    with _stream_file("standard output", mark.suffix or "") as path:
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,  # noqa: PTH123
            redirect_stdout(nowhere if mark.alone else sys.stderr),
        ):
            yield path
        stdout.flush()
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, stdout.buffer)
        stdout.flush()
