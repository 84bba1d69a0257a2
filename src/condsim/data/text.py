"""Text files: what packs them, their encoding and their lines."""

from __future__ import annotations

import bz2
import codecs
import gzip
import logging
import lzma
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from condsim.data.row import location
from condsim.errors import InputError, one_line, printable

_LOGGER = logging.getLogger(__name__)

# A limit keeps a file without line ends out of memory.
MAX_LINE_BYTES = 16 * 1024 * 1024
_HEAD_LINES = 64
_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_ZIP_MAGIC = b"PK\x03\x04"
# Files that are not text, by their first bytes.
_BINARY_KINDS = {
    b"\x1f\x8b": "is packed by gzip; its name must end in .gz",
    b"BZh": "is packed by bzip2; its name must end in .bz2",
    b"\xfd7zXZ\0": "is packed by xz; its name must end in .xz",
    b"\x28\xb5\x2f\xfd": "is packed by Zstandard; unpack it first",
    _ZIP_MAGIC: "is a zip archive; its name must end in .zip, or .xlsx for a workbook",
    b"PAR1": "is a Parquet file; its name must end in .parquet",
    b"ARROW1": "is an Arrow file; save it as Parquet",
    b"SQLite format 3": "is a SQLite database; export a table as CSV",
    b"\xd0\xcf\x11\xe0": "is an old Office document; save it as .xlsx or .csv",
    b"%PDF": "is a PDF document, not a table",
    b"\x89PNG": "is a PNG image, not a table",
    b"\xff\xd8\xff": "is a JPEG image, not a table",
    b"GIF8": "is a GIF image, not a table",
}
# A character outside the first plane, written as two halves of three bytes (CESU-8).
_HALVES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
# Encodings of Python that are not character sets of files.
_NOT_CHARACTER_SETS = ("idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf-7")
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
# UTF-16 without a byte-order mark, by its first two characters, if these are ASCII.
_UTF_16_STARTS = {
    "utf-16-le": re.compile(rb"[^\0]\0[^\0]\0"),
    "utf-16-be": re.compile(rb"\0[^\0]\0[^\0]"),
}
# Letters with accents and typographic quotes; in cp1252 these bytes are not text.
_UTF_8_LETTER = re.compile(rb"\xc3[\x80-\xbf]|\xe2\x80[\x80-\xbf]")


class FileFormat(NamedTuple):
    """Separator and encoding of a text table as the user states them; None is detected."""

    separator: str | None = None
    encoding: str | None = None

    @classmethod
    def checked(cls, separator: str | None, encoding: str | None) -> FileFormat:
        """Check the options of a command; ``tab`` is a separator, too."""
        separator = "\t" if separator in ("tab", "\\t") else separator
        # The name in Python for UTF-8 with a byte-order mark, which is dropped anyway.
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        if separator is not None and (
            len(separator) != 1 or separator.isalnum() or separator in "\"'\r\n"
        ):
            raise InputError(f"--separator: must be one character or 'tab', got {separator!r}.")
        if encoding is None:
            return cls(separator)
        with suppress(LookupError, ValueError):
            name = codecs.lookup(encoding).name
            is_lines = name.startswith("utf-16") or "\n".encode(name) == b"\n"
            if is_lines and name not in _NOT_CHARACTER_SETS:
                return cls(separator, name)
        raise InputError(
            "--encoding: must be a character set such as utf-8, utf-16 or cp1252, got "
            f"{encoding!r}."
        )


DETECTED = FileFormat()


@lru_cache(maxsize=1024)
def log_form(path: Path, message: str) -> None:
    """Log once that a file is not in the form that its suffix stands for."""
    _LOGGER.info("%s: %s", printable(str(path)), message)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read its bytes; unpack a file whose name ends in a suffix of `PACKED`."""
    message = f"{path} cannot be opened"
    with one_line(message, RuntimeError, NotImplementedError, *_READ_ERRORS):
        match path.suffix.lower():
            case ".gz":
                return cast(BinaryIO, gzip.open(path, "rb"))
            case ".bz2":
                return cast(BinaryIO, bz2.open(path, "rb"))
            case ".xz":
                return cast(BinaryIO, lzma.open(path, "rb"))
            case ".zip":
                return _open_zipped(path)
        return path.open("rb")


def _open_zipped(path: Path) -> BinaryIO:
    with zipfile.ZipFile(path) as archive:
        names = [
            name
            for name in archive.namelist()
            if not name.endswith("/") and not name.startswith("__MACOSX/")
        ]
        if len(names) != 1:
            raise InputError(f"{path}: must contain one file, got {len(names)}. Unpack it first.")
        return cast(BinaryIO, archive.open(names[0]))


def file_lines(path: Path) -> Generator[str, None, None]:
    """Decode a file in UTF-8 or UTF-16 line by line."""
    with open_bytes(path) as stream:
        yield from PeekedStream(path, stream).lines()


def first_line(path: Path) -> str:
    """Return the first line of a file that is not blank; empty if it cannot be read."""
    try:
        with closing(file_lines(path)) as lines:
            return next((line for line in lines if line.strip()), "")
    except InputError:
        return ""


class PeekedStream:
    """A binary stream whose first lines, the ``head``, have been read ahead to detect its form."""

    def __init__(self, path: Path, stream: BinaryIO, file_format: FileFormat = DETECTED) -> None:
        self.path = path
        self.file_format = file_format
        self.head: list[bytes] = []
        self._stream = stream
        size = 0
        while len(self.head) < _HEAD_LINES and size < _HEAD_BYTES:
            if not (line := self._next_line(len(self.head))):
                break
            self.head.append(line)
            size += len(line)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    @property
    def is_zip(self) -> bool:
        """True for a zip file, as an Excel workbook is."""
        return bool(self.head) and self.head[0].startswith(_ZIP_MAGIC)

    def encoding(self, *, legacy: bool) -> str | None:
        """Return the encoding that the first lines tell; None if they are ASCII.

        In a ``legacy`` table, text that is not UTF-8 may be cp1252.
        """
        if self.file_format.encoding is not None:
            return self.file_format.encoding
        if self.head and self.head[0].startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        for encoding, start in _UTF_16_STARTS.items():
            if self.head and start.match(self.head[0]):
                return encoding
        for line in self.head:
            if not line.isascii():
                return _line_encoding(line) if legacy else "utf-8"
        return None

    def head_text(self) -> str:
        """Decode the first lines, with a mark in place of what is not valid."""
        encoding = self.encoding(legacy=True) or "utf-8"
        return b"".join(self.head).decode(encoding, errors="replace").removeprefix("\ufeff")

    def lines(self, *, legacy: bool = False) -> Iterator[str]:
        """Decode the lines, line ends included, without a byte-order mark; see `encoding`."""
        self._check_is_text()
        encoding = self.encoding(legacy=legacy)
        if encoding is not None and encoding.startswith("utf-16"):
            return self._utf_16_lines(encoding)
        return self._decoded_lines(encoding, legacy and self.file_format.encoding is None)

    def chunks(self) -> Iterator[str]:
        """Decode UTF-8 or UTF-16 in pieces of any length, for a text that may be one line."""
        decoder = codecs.getincrementaldecoder(self.encoding(legacy=False) or "utf-8-sig")()
        pieces = iter(self._next_chunk, b"")
        for piece in chain(self.head, pieces, [b""]):
            try:
                text = decoder.decode(piece, final=not piece)
            except UnicodeError as error:
                raise InputError(f"{self.path}: not valid Unicode ({_reason(error)}).") from None
            if "\0" in text:
                raise InputError(f"{self.path}: contains a NUL character; the file must be text.")
            yield text.removeprefix("\ufeff")

    def _check_is_text(self) -> None:
        for start, fault in _BINARY_KINDS.items():
            if self.head and self.head[0].startswith(start):
                raise InputError(f"{self.path}: {fault}.")

    def _decoded_lines(self, encoding: str | None, legacy: bool) -> Iterator[str]:
        """Decode UTF-8 or cp1252; the first line that is not ASCII decides if neither is known."""
        offset = 0
        for number, raw in enumerate(self._raw_lines(), start=1):
            if encoding is None and not raw.isascii():
                encoding = _line_encoding(raw) if legacy else "utf-8"
                if encoding == "cp1252":
                    self._check_is_text()
                    form = f"read with text in cp1252, since line {number} is not UTF-8"
                    log_form(self.path, form)
            if legacy and encoding == "cp1252" and _UTF_8_LETTER.search(raw):
                raise InputError(
                    f"{location(self.path, line=number)}: is UTF-8, and lines before it are "
                    "cp1252. Write the file in one encoding, or read it as it is with "
                    "--encoding cp1252."
                )
            text = self._decoded(raw, encoding or "utf-8", number=number, offset=offset)
            offset += len(raw)
            yield text.removeprefix("\ufeff") if number == 1 else text

    def _decoded(self, raw: bytes, encoding: str, *, number: int, offset: int) -> str:
        """Decode a line, given its number and the bytes before it, which a message states."""
        if encoding == "utf-8" and _HALVES.search(raw):
            log_form(self.path, f"read with halves of characters joined (CESU-8), line {number}")
            raw = _HALVES.sub(_joined_halves, raw)
        try:
            text = raw.decode(encoding)
        except UnicodeError as error:
            name = "UTF-8" if encoding == "utf-8" else encoding
            start = getattr(error, "start", 0)
            where = location(self.path, line=number)
            raise InputError(
                f"{where}, byte {offset + start} of the file: not valid {name} "
                f"(0x{raw[start]:02x}, {_reason(error)}). Convert the file, for example "
                "with 'iconv -f cp1252 -t utf-8'."
            ) from None
        if "\0" in text:
            where = location(self.path, line=number)
            raise InputError(
                f"{where}, byte {offset + raw.index(0)} of the file: NUL byte. The file must "
                "be text in UTF-8 or UTF-16, not binary."
            )
        return text

    def _utf_16_lines(self, encoding: str) -> Iterator[str]:
        """Decode UTF-16, whose line ends are not where the byte of a line feed is."""
        decoder = codecs.getincrementaldecoder(encoding)()
        number = 1
        # The parts of a line: a character may contain the byte of a line feed.
        parts: list[str] = []
        size = 0
        for raw in chain(self._raw_lines(), [b""]):
            try:
                text = decoder.decode(raw, final=not raw)
            except UnicodeError as error:
                where = location(self.path, line=number)
                raise InputError(f"{where}: not valid UTF-16 ({_reason(error)}).") from None
            if "\0" in text:
                where = location(self.path, line=number)
                raise InputError(f"{where}: NUL character; the file must be text.")
            *ends, rest = text.split("\n")
            for end in ends:
                line = "".join([*parts, end, "\n"])
                yield line.removeprefix("\ufeff") if number == 1 else line
                number += 1
                parts, size = [], 0
            parts.append(rest)
            size += 2 * len(rest)
            if size > MAX_LINE_BYTES:
                raise self._long_line(number)
        if text := "".join(parts):
            yield text

    def _raw_lines(self) -> Iterator[bytes]:
        number = 0
        lines = chain(self.head, iter(lambda: self._next_line(number), b""))
        for number, raw in enumerate(lines, start=1):
            if len(raw) > MAX_LINE_BYTES:
                raise self._long_line(number)
            yield raw

    def _next_line(self, number: int) -> bytes:
        """Read the line after ``number`` lines, not past the limit; empty at the file's end."""
        with one_line(f"{self.path}, after line {number}: cannot be read", *_READ_ERRORS):
            return self._stream.readline(MAX_LINE_BYTES + 1)

    def _next_chunk(self) -> bytes:
        with one_line(f"{self.path}: cannot be read", *_READ_ERRORS):
            return self._stream.read(_CHUNK_BYTES)

    def _long_line(self, number: int) -> InputError:
        return InputError(
            f"{location(self.path, line=number)}: is longer than {MAX_LINE_BYTES >> 20} MiB; lines "
            "must end with LF or CRLF."
        )


def _reason(error: UnicodeError) -> str:
    return str(getattr(error, "reason", error))


def _joined_halves(match: re.Match[bytes]) -> bytes:
    halves = match.group().decode("utf-8", "surrogatepass")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16").encode()


def _line_encoding(raw: bytes) -> str:
    """Tell UTF-8 from cp1252 by a line that is not ASCII."""
    # A line with both is damaged UTF-8, which decoding reports.
    if _UTF_8_LETTER.search(raw) or _HALVES.search(raw):
        return "utf-8"
    for encoding in ("utf-8", "cp1252"):
        try:
            raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "utf-8"
