"""Writing files so that nothing is lost: written beside, then renamed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from condsim.errors import InputError

__all__ = ["check_not_input", "replacing", "sha256_of"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside ``path`` and renames it over ``path`` on success.

    On an error the temporary file is removed and ``path`` is as it was.

    Args:
        path: The file to write.

    Yields:
        The path to write to, in the same folder.

    Raises:
        InputError: If the folder of ``path`` does not exist, ``path`` is a folder, or it cannot be
            written.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file to write.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist; make the folder first.")
    # A name of its own, or two processes that write the same file would take it from each other.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        if error.filename not in (None, str(partial), str(path)):
            raise  # about another file
        raise InputError(f"{path} cannot be written: {error}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def check_not_input(output: Path, file: Path, *, option: str = "output") -> None:
    """Refuses to write a file over the one that is read.

    Args:
        output: What is to be written.
        file: What is read.
        option: What the user has to change.

    Raises:
        InputError: If they are one file.
    """
    if output.exists() and file.exists() and output.samefile(file):
        raise InputError(f"{output} is the input itself. Give another {option}.")


def sha256_of(path: Path) -> str:
    """Hashes a file in blocks.

    Args:
        path: The file.

    Returns:
        Its SHA-256 as 64 hexadecimal digits.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
