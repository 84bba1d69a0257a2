"""Folders of a corpus and of an index: a manifest, written last, and memory-mapped arrays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from condsim.errors import InputError, one_line
from condsim.io import check_folder, write_json

MANIFEST = "manifest.json"
FORMAT = 1
"""Changes when earlier folders can no longer be read."""


def read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """Read the manifest of a folder, which must contain something of that kind."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if (manifest["kind"], manifest["format"]) == (kind, FORMAT):
            return manifest
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"{folder} contains no {kind}; make it with 'condsim contexts run'."
        ) from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"Cannot read the {kind} in {folder}: {MANIFEST}: {error}.") from error
    raise InputError(f"{folder} contains no {kind} of this version of condsim.")


def write_manifest(folder: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Write the manifest of a folder."""
    write_json({"kind": kind, "format": FORMAT, **values}, folder / MANIFEST)


@contextmanager
def build_folder(folder: Path, kind: str) -> Iterator[Path | None]:
    """Yield an empty folder to build in, renamed to ``folder`` on success; None if that exists."""
    if (folder / MANIFEST).is_file():
        yield None
        return
    check_folder(folder, what=kind, own=[MANIFEST])
    partial = folder.with_name(f"{folder.name}.partial")
    with one_line(f"Cannot write the {kind} {folder}", OSError):
        # Left by a process that was killed.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            yield partial
            # An empty folder of that name may exist.
            with suppress(FileNotFoundError):
                folder.rmdir()
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
