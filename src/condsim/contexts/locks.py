"""One process at a time in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from condsim.errors import InputError, require

__all__ = ["sole_process"]


@contextmanager
def sole_process(folder: Path) -> Iterator[None]:
    """Keeps other processes from the work in a folder; the lock dies with its process.

    Args:
        folder: The folder; made if it is not there. The lock file lies beside it.

    Yields:
        None, while the folder is this process's own.

    Raises:
        InputError: If another process is at work in it, or the lock cannot be written.
    """
    filelock = require("filelock", extra="contexts")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"), timeout=0)
        lock.acquire()
    except filelock.Timeout as error:
        raise InputError(
            f"Another process is at work in {folder}. Wait until it has ended, or give another "
            "folder."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot write to {folder}: {error.strerror or error}.") from error
    try:
        yield
    finally:
        lock.release()
