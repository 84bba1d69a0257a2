"""Atomic writes of files, and checks of the files and folders that are written."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import platform
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path

from condsim.errors import InputError, one_line, reason_of

PARTIAL = ".partial"
_FULL_DISK_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Marks of errors about writing: of any library, of safetensors, and of torch.
_WRITING_MARKS = ("no space left", "os error", "pytorchstreamwriter", "inline_container")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path``, and rename it to ``path`` on success.

    On an error the temporary file is removed and ``path`` is unchanged; one that a killed process
    left is removed by the next that writes the same file. Links are followed, file modes are kept,
    and devices and pipes are written directly.
    """
    target, partial = path, None
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the name of a file to write.")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} does not exist; make the folder first.")
        if path.exists() and not path.is_file():
            yield path
            return
        target = _link_target(path)
        partial = _temporary_path(target)
        yield partial
        if target.exists():
            partial.chmod(stat.S_IMODE(target.stat().st_mode))
        partial.replace(target)
    except OSError as error:
        # Errors about other files that the block opened are not ours to translate.
        if error.filename not in (None, str(partial), str(path), str(target)):
            raise
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _link_target(path: Path) -> Path:
    """Follow links to a file, which need not exist; InputError for a loop of links."""
    # Python 3.13 returns one of the links where earlier versions raise.
    with suppress(RuntimeError):
        target = path.resolve()
        if not target.is_symlink():
            return target
    raise InputError(f"{path} cannot be written: its symbolic links form a loop.")


def _temporary_path(path: Path) -> Path:
    """Name a temporary file of this process, and remove the files of dead processes."""
    # The process is in the name, or two that write the same file would take it from each other.
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:6]
    prefix = f"{path.name}.{host}-"
    for sibling in path.parent.iterdir():
        if sibling.name.startswith(prefix) and sibling.name.endswith(PARTIAL):
            process = sibling.name.removeprefix(prefix).split("-")[0]
            if process.isdecimal() and not _is_running(int(process)):
                with suppress(OSError):
                    sibling.unlink()
    return path.with_name(f"{prefix}{os.getpid()}-{secrets.token_hex(4)}{PARTIAL}")


def _is_running(process: int) -> bool:
    # On Windows signal 0 is Ctrl-C, so files of dead processes stay.
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def read_text(path: Path) -> str:
    """Read a text file in UTF-8; InputError if that fails."""
    with one_line(f"{path} cannot be read", OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 as `replacing` does."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(content: object, path: Path) -> None:
    """Write plain values or dataclasses as JSON in one step, without NaN and infinity."""
    write_text(path, json.dumps(finite_values(content), indent=2, ensure_ascii=False) + "\n")


def finite_values(value: object) -> object:
    """Replace NaN and infinity, which JSON lacks, by None, and a dataclass by a mapping."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {name: finite_values(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def saved_work(folder: Path, *, advice: str = "run the same command again") -> Iterator[None]:
    """Say in one line that the folder of long work cannot be written, such as on a full disk."""
    try:
        yield
    # The libraries that write there share no class of errors.
    except Exception as error:
        text = str(error).lower()
        is_full = isinstance(error, OSError) and error.errno in _FULL_DISK_CODES
        if not is_full and not any(mark in text for mark in _WRITING_MARKS):
            raise
        raise InputError(
            f"{folder} cannot be written: {reason_of(error)}. Finished work is saved; free some "
            f"space and {advice}."
        ) from error


def check_not_input(output: Path, file: Path) -> None:
    """Refuse to write a file over the one that is read."""
    # Reading or writing a bad path gives a better error later.
    with suppress(OSError):
        if output.is_file() and file.is_file() and output.samefile(file):
            raise InputError(f"{output} is the input itself. Give another output.")
