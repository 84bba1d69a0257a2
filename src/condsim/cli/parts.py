"""Work on the parts of large data, file by file, on the machines of a Ray cluster."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import typer

from condsim import __version__
from condsim.errors import CondSimError, InputError, require
from condsim.integrations.ray import RayWorkers

RECORD = "condsim-parts.json"
"""File of an output folder that says what its parts were made with."""

Work = Callable[[Path, Path], None]
"""Reads a file and writes another, complete or not at all."""


def work_on_parts(
    files: Path,
    output: Path | None,
    work: Work,  # must be known to all machines
    *,
    settings: Mapping[str, object],  # what parts of one output must have in common
    suffix: str | None = None,  # of the outputs, if it is not that of the parts
    address: str | None,
    workers: int | None,
    device: str | None = None,  # a worker on ``cuda`` has an accelerator of its own
) -> None:
    """Does the work of a command on each part of ``files``, and leaves out those that are done."""
    # A worker that dies is replaced, and its part done again: a part is written as a whole, so
    # every row is in the output once. If a part fails, the others are finished before the error.
    if output is None:
        raise InputError("--engine ray needs --output, a folder for the parts it writes.")
    pattern = _address(files)
    head, name = _address(files.parent), files.name
    if any(mark in head for mark in "*?["):
        raise InputError(f"{pattern}: only the names of the parts may have wildcards.")
    source, target = _Folder(head), _Folder(_address(output))
    found = sorted(source.sizes().items())
    sizes = {part: size for part, size in found if fnmatchcase(part, name)}
    if not sizes:
        raise InputError(f"{pattern}: no such files. Give --file a pattern such as 'part-*.csv'.")
    outputs = {part: str(Path(part).with_suffix(suffix or Path(part).suffix)) for part in sizes}
    if len(set(outputs.values())) < len(outputs):
        raise InputError(f"{pattern}: two parts would be written to one {suffix} file.")
    done = target.sizes()
    _check_record(target, {**settings, "condsim": __version__}, sizes, done)
    left = {part: made for part, made in outputs.items() if made not in done}
    typer.echo(f"{output}: {len(sizes)} parts, {len(sizes) - len(left)} done before", err=True)
    if not left:
        return
    pool = RayWorkers(
        address=address, workers=workers, gpus=float(bool(device and device.startswith("cuda")))
    )
    calls = list(left.items())
    failed = []
    told = "A worker failed: {} The parts that are done stay; run the same command again."
    for part, error in pool.map(_Worker, (work, source, target), calls, most=len(calls), what=told):
        if error is not None:
            failed.append(error)
        typer.echo(f"{part}: {'failed' if error else 'done'}", err=True)
    if failed:
        more = f" {len(failed) - 1} more parts failed." if len(failed) > 1 else ""
        raise InputError(f"{failed[0]}{more} Mend it and run the same command for the rest.")


def _check_record(
    target: _Folder, made: dict[str, object], sizes: Mapping[str, int], done: Mapping[str, int]
) -> None:
    """Refuses an output that was made of or with something else; writes what this one is."""
    known: dict[str, Any] = {"parts": {}}
    if RECORD in done:
        try:
            known = json.loads(target.read(RECORD))
            known["parts"].items()
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{target.name}/{RECORD} is damaged. Give another --output.") from None
        differ = [f"{key} ({known.get(key)!r})" for key in made if known.get(key) != made[key]]
        differ += [part for part, size in known["parts"].items() if sizes.get(part, size) != size]
        if differ:
            raise InputError(
                f"{target.name} was begun with another {', '.join(differ[:3])}. Give another "
                "--output, or the same files and options."
            )
    elif done:
        raise InputError(f"{target.name} holds other files. Give --output a new folder.")
    parts = {**known["parts"], **sizes}
    if parts != known["parts"]:
        target.write(RECORD, json.dumps({**made, "parts": parts}, indent=1).encode())


def _address(path: Path) -> str:
    """A path as the user wrote it: a `Path` makes ``s3:/`` of ``s3://``."""
    scheme, colon, rest = path.as_posix().partition(":/")
    if not colon or "/" in scheme or len(scheme) < 2:
        return str(path)
    return f"{scheme}://{'/' if scheme == 'file' else ''}{rest}"


class _Folder:
    """A folder of this machine, or of an object store that pyarrow reads."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def local(self) -> Path | None:
        """The folder, if it is one of this machine or mounted there."""
        return None if "://" in self.name else Path(self.name).absolute()

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system and the folder in it."""
        fs = require("pyarrow.fs", extra="parquet")
        try:
            found: tuple[Any, str] = fs.FileSystem.from_uri(str(self.local or self.name))
        except (OSError, ValueError) as error:  # pyarrow's own are among these
            raise InputError(f"{self.name}: {str(error).splitlines()[0]}") from None
        return found

    def __getstate__(self) -> dict[str, str]:
        return {"name": self.name}

    def sizes(self) -> dict[str, int]:
        """Names of the files in it, and their bytes; without those that begin with a dot."""
        fs = require("pyarrow.fs", extra="parquet")
        system, folder = self._opened
        if self.local is not None and not self.local.exists():
            return {}
        try:
            found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        except OSError as error:
            raise InputError(f"{self.name}: {str(error).splitlines()[0]}") from None
        files = [one for one in found if one.type == fs.FileType.File]
        return {one.base_name: one.size for one in files if not one.base_name.startswith(".")}

    def read(self, name: str) -> bytes:
        """The content of a file."""
        system, folder = self._opened
        with system.open_input_stream(f"{folder}/{name}") as stream:
            content: bytes = stream.read()
        return content

    def fetch(self, name: str, path: Path) -> None:
        """Copies a file to this machine."""
        fs, (system, folder) = require("pyarrow.fs", extra="parquet"), self._opened
        fs.copy_files(f"{folder}/{name}", str(path), system, fs.LocalFileSystem())

    def put(self, path: Path, name: str) -> None:
        """Copies a file of this machine into it; an object store shows it when it is complete."""
        fs, (system, folder) = require("pyarrow.fs", extra="parquet"), self._opened
        fs.copy_files(str(path), f"{folder}/{name}", fs.LocalFileSystem(), system)

    def write(self, name: str, content: bytes) -> None:
        """Writes a small file."""
        system, folder = self._opened
        system.create_dir(folder)
        with system.open_output_stream(f"{folder}/{name}") as stream:
            stream.write(content)


class _Worker:
    """Does the work on parts; those of an object store are copied to this machine and back."""

    def __init__(self, work: Work, source: _Folder, target: _Folder) -> None:
        self._work, self._source, self._target = work, source, target

    def work(self, call: tuple[str, str]) -> tuple[str, str | None]:
        part, made = call
        try:
            with tempfile.TemporaryDirectory(prefix="condsim-part-") as folder:
                read, written = Path(folder, part), Path(folder, "made", made)
                if self._source.local is None:
                    self._source.fetch(part, read)
                else:
                    read = self._source.local / part
                if self._target.local is None:
                    written.parent.mkdir()
                    self._work(read, written)
                    self._target.put(written, made)
                else:
                    self._work(read, self._target.local / made)
        except (CondSimError, OSError) as error:
            return part, str(error).replace(str(read.parent), self._source.name)
        return part, None
