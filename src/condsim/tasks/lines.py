"""The lines of a UTF-8 text file, decoded one by one so that a fault has a line and a byte."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from condsim.errors import InputError
from condsim.tasks.row import place

__all__ = ["decoded_lines", "open_bytes"]

_LONGEST_LINE = 16 * 1024 * 1024  # bytes; keeps a file with no line ends out of memory


def open_bytes(path: Path) -> BinaryIO:
    """Opens a file to read its bytes.

    Args:
        path: The file; one whose name ends in ``.gz`` is unpacked on the way.

    Returns:
        The open file; the caller closes it.

    Raises:
        InputError: If it cannot be opened.
    """
    try:
        if path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({error.strerror}).") from None


def decoded_lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Decodes a file line by line; a byte-order mark at its start is dropped.

    Args:
        path: The file, for messages.
        stream: Its bytes.

    Yields:
        Each line with its line end (LF or CRLF).

    Raises:
        InputError: At a byte that is not UTF-8, a NUL, a line of more than 16 MiB, or the place
            where a damaged gzip file cannot be unpacked.
    """
    offset = 0
    number = 0
    while raw := _next_line(path, stream, number):
        number += 1
        where = place(path, line=number)
        if len(raw) > _LONGEST_LINE:
            limit = _LONGEST_LINE >> 20
            raise InputError(
                f"{where}: is longer than {limit} MiB. Lines must end with LF or CRLF; check that "
                "this is a text file with one row a line."
            )
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where}, byte {offset + error.start} of the file: not valid UTF-8 "
                f"(0x{raw[error.start]:02x}, {error.reason}). Save the file as UTF-8."
            ) from None
        if "\0" in text:
            raise InputError(
                f"{where}, byte {offset + raw.index(0)} of the file: NUL byte. The file must be "
                "text in UTF-8; this one is damaged, binary or UTF-16."
            )
        offset += len(raw)
        yield text.removeprefix("\ufeff") if number == 1 else text


def _next_line(path: Path, stream: BinaryIO, number: int) -> bytes:
    """Reads the line after ``number`` lines; empty at the end of the file."""
    try:
        return stream.readline(_LONGEST_LINE + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}, after line {number}: not a whole gzip file ({error}). Copy it again."
        ) from None
