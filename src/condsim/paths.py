"""Stem, format and hash of a file, home folders in paths, and the files of the package."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from condsim.errors import InputError, one_line

PACKED = (".gz", ".bz2", ".xz", ".zip")
"""Suffixes of packed files, which follow the suffix of the format."""


def expanded(path: Path | str) -> Path:
    """Replace ``~`` in a path by a home folder; InputError if there is no such user."""
    with one_line(str(path), RuntimeError):
        return Path(path).expanduser()


def sha256_of(path: Path) -> str:
    """Hash a file in blocks; the SHA-256 is 64 hexadecimal digits."""
    with one_line(f"{path} cannot be read", OSError), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def suffix_of(path: Path) -> str:
    """Detect the format of a file from its name, such as ``.csv`` for ``pairs.CSV.gz``."""
    inner = path.with_suffix("").suffix.lower()
    is_packed = path.suffix.lower() in PACKED and inner not in ("", ".parquet", ".xlsx")
    return inner if is_packed else path.suffix.lower()


def check_suffix(path: Path, suffixes: Sequence[str]) -> str:
    """Reject a file name that has none of the suffixes; return the one it has, in lower case."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        names = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise InputError(f"{path}: the suffix must be {names}; got {suffix!r}.")
    return suffix


def stem_of(path: Path) -> str:
    """Name the data of a file: its name without the suffix, or without both of ``.csv.gz``."""
    return path.with_suffix("").stem if path.suffix.lower() in PACKED else path.stem


def asset(name: str) -> Path:
    """Find a file or folder of the package; one inside a zip is copied to a temporary folder."""
    path = Path(__file__).parent / "assets" / name
    return path if path.exists() else _extracted(name)


@cache
def _extracted(name: str) -> Path:
    source = resources.files("condsim") / "assets" / name
    folder = Path(tempfile.mkdtemp(prefix="condsim-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if source.is_file():
        (folder / name).write_bytes(source.read_bytes())
        return folder / name
    (folder / name).mkdir()
    for file in source.iterdir():
        (folder / name / file.name).write_bytes(file.read_bytes())
    return folder / name
