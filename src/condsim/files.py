"""Writes files atomically, hashes them and refuses to write over an input."""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from condsim.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside ``path`` and renames it over ``path`` on success.

    On an error the temporary file is removed and ``path`` is as it was. A device or a pipe is
    written itself.
    """
    # A name of its own, or two processes that write the same file would take it from each other.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the name of a file to write.")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} does not exist; make the folder first.")
        if path.exists() and not path.is_file():
            yield path
            return
        yield partial
        partial.replace(path)
    except OSError as error:
        if error.filename not in (None, str(partial), str(path)):
            raise  # about another file
        raise InputError(f"{path} cannot be written: {error}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 as `replacing` does."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def check_not_input(output: Path, file: Path, *, option: str = "output") -> None:
    """Refuses to write a file over the one that is read; ``option`` names what must change."""
    with suppress(OSError):  # whoever reads or writes a bad path says what is wrong with it
        if output.is_file() and file.is_file() and output.samefile(file):
            raise InputError(f"{output} is the input itself. Give another {option}.")


def sha256_of(path: Path) -> str:
    """Hashes a file in blocks; the SHA-256 is 64 hexadecimal digits."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from error


class Closing(ABC):
    """Closes itself at the end of a ``with`` block, whatever happened in it."""

    @abstractmethod
    def close(self) -> None:
        """Releases what is held; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
