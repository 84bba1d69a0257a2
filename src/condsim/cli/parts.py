"""Work on the parts of large data, file by file, on the machines of a Ray cluster."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from condsim import __version__
from condsim.cache import changed_keys, check_unchanged
from condsim.cli.process import print_note
from condsim.errors import CondSimError, InputError, named_as, one_line, require
from condsim.integrations.ray import RayWorkers

MANIFEST = "condsim-parts.json"
"""File in an output folder with the settings and inputs of its parts."""

Work = Callable[[Path, Path], None]
"""Read a file and write another, complete or not at all."""


def work_on_parts(
    files: Path,
    output: Path | None,
    work: Work,
    *,
    settings: Mapping[str, object],
    suffix: str | None = None,
    address: str | None,
    workers: int | None,
    device: str | None = None,
) -> None:
    """Do the work of a command, which all machines can import, on each part without output.

    A part is written as a whole, so every row is in the output once, also where a worker died. If a
    part fails, the others are finished before the error. All parts of an output must have the same
    settings. A worker on ``cuda`` gets its own accelerator.
    """
    if output is None:
        raise InputError("--engine ray needs --output, a folder for the parts it writes.")
    pattern = _address(files)
    head, name = _address(files.parent), files.name
    if any(mark in head for mark in "*?["):
        raise InputError(f"{pattern}: only the names of the parts may have wildcards.")
    source, target = _Folder(head), _Folder(_address(output))
    sizes = {part: size for part, size in source.sizes().items() if fnmatchcase(part, name)}
    if not sizes:
        raise InputError(f"{pattern}: no such files. Give --file a pattern such as 'part-*.csv'.")
    outputs = {}
    for part in sorted(sizes):
        outputs[part] = str(Path(part).with_suffix(suffix or Path(part).suffix))
    if len(set(outputs.values())) < len(outputs):
        raise InputError(f"{pattern}: two parts would be written to one {suffix} file.")
    done = target.sizes()
    _check_manifest(target, {**settings, "condsim": __version__}, sizes, done)
    open_parts = [(part, written) for part, written in outputs.items() if written not in done]
    print_note(f"{output}: {len(sizes)} parts, {len(sizes) - len(open_parts)} done before")
    if not open_parts:
        return
    gpus = float(bool(device and device.startswith("cuda")))
    pool = RayWorkers(address=address, workers=workers, gpus=gpus)
    failure = "A worker failed: {} The parts that are done stay; run the same command again."
    arguments, limit = (work, source, target), len(open_parts)
    errors = []
    for part, error in pool.map(
        _PartWorker, arguments, open_parts, max_workers=limit, failure=failure
    ):
        if error is not None:
            errors.append(error)
        print_note(f"{part}: {'failed' if error else 'done'}")
    if errors:
        more = f" {len(errors) - 1} more parts failed." if len(errors) > 1 else ""
        raise InputError(f"{errors[0]}{more} Fix it and run the same command for the other parts.")


def _check_manifest(
    target: _Folder, settings: dict[str, object], sizes: Mapping[str, int], done: Mapping[str, int]
) -> None:
    """Reject an output made from other files or options; write the manifest of this one."""
    manifest: dict[str, Any] = {"parts": {}}
    if MANIFEST in done:
        message = f"{target.name}/{MANIFEST} is damaged"
        causes = (ValueError, TypeError, KeyError, AttributeError)
        with one_line(message, *causes, advice="Give another --output."):
            manifest = json.loads(target.read(MANIFEST))
            manifest["parts"].items()
        parts = manifest["parts"]
        changed = changed_keys(settings, manifest) + changed_keys(parts, {**parts, **sizes})
        check_unchanged(target.name, changed, subject="output")
    elif done:
        raise InputError(f"{target.name} holds other files. Give --output a new folder.")
    parts = {**manifest["parts"], **sizes}
    if parts != manifest["parts"]:
        target.write(MANIFEST, json.dumps({**settings, "parts": parts}, indent=1).encode())


def _address(path: Path) -> str:
    """Return a path as the user wrote it: a `Path` turns ``s3://`` into ``s3:/``."""
    scheme, colon, rest = path.as_posix().partition(":/")
    if not colon or "/" in scheme or len(scheme) < 2:
        return str(path)
    return f"{scheme}://{'/' if scheme == 'file' else ''}{rest}"


class _Folder:
    """A folder of this machine, or of an object store that pyarrow reads."""

    def __init__(self, name: str) -> None:
        self.name = name
        # The folder on this machine; None for an object store.
        self.local = None if "://" in name else Path(name).absolute()

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system and the folder in it."""
        fs = require("pyarrow.fs", extra="parquet")
        with one_line(f"{self.name} cannot be opened", OSError, ValueError):
            opened: tuple[Any, str] = fs.FileSystem.from_uri(str(self.local or self.name))
        return opened

    def __reduce__(self) -> tuple[type[_Folder], tuple[str]]:
        return _Folder, (self.name,)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of its files in bytes, without those that begin with a dot."""
        fs = require("pyarrow.fs", extra="parquet")
        system, folder = self._opened
        with one_line(f"{self.name} cannot be read", OSError):
            entries = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return {
            entry.base_name: entry.size
            for entry in entries
            if entry.type == fs.FileType.File and not entry.base_name.startswith(".")
        }

    def read(self, name: str) -> bytes:
        """Read a small file."""
        system, folder = self._opened
        with system.open_input_stream(f"{folder}/{name}") as stream:
            content: bytes = stream.read()
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        system, folder = self._opened
        system.create_dir(folder)
        with system.open_output_stream(f"{folder}/{name}") as stream:
            stream.write(content)


class _PartWorker:
    """Do the work on parts; parts in an object store are copied to this machine and back."""

    def __init__(self, work: Work, source: _Folder, target: _Folder) -> None:
        self._work, self._source, self._target = work, source, target

    def work(self, call: tuple[str, str]) -> tuple[str, str | None]:
        part, output_name = call
        source, target = self._source, self._target
        fs = require("pyarrow.fs", extra="parquet")
        with tempfile.TemporaryDirectory(prefix="condsim-part-") as folder:
            input_folder, output_folder = source.local or Path(folder), target.local
            try:
                if source.local is None:
                    fs.copy_files(f"{source.name}/{part}", str(input_folder / part))
                if output_folder is None:
                    output_folder = Path(folder, "output")
                    output_folder.mkdir()
                with named_as(input_folder, source.name):
                    self._work(input_folder / part, output_folder / output_name)
                if target.local is None:
                    # An object store shows it when it is complete.
                    output_file = str(output_folder / output_name)
                    fs.copy_files(output_file, f"{target.name}/{output_name}")
            except (CondSimError, OSError) as error:
                return part, str(error)
        return part, None
