"""Folders that are there whole or not at all: built beside, locked, renamed, described."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condsim.errors import InputError, require

__all__ = [
    "MANIFEST",
    "build_once",
    "changed_values",
    "need_manifest",
    "read_manifest",
    "write_manifest",
]

MANIFEST = "manifest.json"


def read_manifest(folder: Path, *, what: str) -> dict[str, Any] | None:
    """Reads what a folder says of itself.

    Args:
        folder: The folder.
        what: What it must hold, such as ``"corpus"``.

    Returns:
        The manifest; None if the folder does not exist or is empty.

    Raises:
        InputError: If it is a file, or holds something else, or its manifest is damaged.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a {what} is a folder.")
    if not folder.exists() or not any(folder.iterdir()):
        return None
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} is not empty and holds no {what}; give another folder.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the {what} in {folder}: {MANIFEST}: {error}.") from error
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or kind != what:
        raise InputError(f"{folder} holds no {what} (it says {kind!r}); give another folder.")
    return manifest


def need_manifest(folder: Path, *, what: str, version: int, made_by: str) -> dict[str, Any]:
    """Reads what a folder says of itself, which must be there and of a known format.

    Args:
        folder: The folder.
        what: What it must hold, such as ``"corpus"``.
        version: The ``format`` that its manifest must name.
        made_by: The function that makes such a folder, for errors.

    Returns:
        The manifest.

    Raises:
        InputError: If it is missing, damaged or of another format.
    """
    manifest = read_manifest(folder, what=what)
    if manifest is None:
        raise InputError(f"{folder} holds no {what}; make it with {made_by}.")
    if manifest.get("format") != version:
        raise InputError(f"{folder} was made by another version of condsim; make it anew.")
    return manifest


def write_manifest(folder: Path, values: Mapping[str, Any], *, what: str) -> None:
    """Writes what a folder says of itself, as the last file of it.

    Args:
        folder: The folder.
        values: Anything JSON can hold.
        what: What the folder holds, such as ``"corpus"``.
    """
    text = json.dumps({"kind": what, **values}, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def changed_values(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Compares what is wanted with what a manifest says.

    Args:
        wanted: The values wanted.
        found: Those of the manifest; keys that are not wanted are left out.

    Returns:
        One text for each value that differs, such as ``"max_words is 60, not 50"``.
    """
    return [
        f"{key} is {found.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if found.get(key) != value
    ]


@contextmanager
def build_once(folder: Path, *, what: str) -> Iterator[Path | None]:
    """Gives a folder to build in, renamed to ``folder`` on success.

    A lock beside the folder keeps two processes from building it at once; the second waits and
    then finds it built. What a killed process left is removed.

    Args:
        folder: The folder; not there, or empty.
        what: What it is to hold, for errors.

    Yields:
        The folder to build in, empty; None if another process has built it in the meantime.

    Raises:
        InputError: If it cannot be written: no right to, or no space left.
        MissingExtraError: If the ``contexts`` extra is not installed.
    """
    filelock = require("filelock", extra="contexts")
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder.with_name(f"{folder.name}.lock")):
            if read_manifest(folder, what=what) is not None:
                yield None
                return
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            try:
                yield partial
                if folder.is_dir():
                    folder.rmdir()  # it is empty
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write the {what} {folder}: {reason}.") from error
