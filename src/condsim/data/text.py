"""Text files: their encoding and lines, and the separator and quote of a table."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import logging
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from condsim.data.row import location
from condsim.errors import InputError, one_line, printable

_LOGGER = logging.getLogger(__name__)

# A limit keeps a file without line ends out of memory.
MAX_LINE_BYTES = 16 * 1024 * 1024
_HEAD_LINES = 64
_HEAD_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_EXCEL_MAGIC = b"PK\x03\x04"
# UTF-16 without a byte-order mark, by its first two characters, if these are ASCII.
_UTF_16_STARTS = {
    "utf-16-le": re.compile(rb"[^\0]\0[^\0]\0"),
    "utf-16-be": re.compile(rb"\0[^\0]\0[^\0]"),
}
# Letters with accents and typographic quotes; in cp1252 these bytes are not text.
_UTF_8_LETTER = re.compile(rb"\xc3[\x80-\xbf]|\xe2\x80[\x80-\xbf]")

# Records of the first lines that a dialect is judged by.
_RECORDS = 50
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SEPARATOR_LINE = re.compile(r'"?sep=([^\s"\w]|\t)"?[\r\n]*', re.IGNORECASE)


class Dialect(NamedTuple):
    """Separator of cells, and the quote around a cell that contains it; None if quotes are text."""

    separator: str
    quote: str | None


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
            if name.startswith("utf-16") or "\n".encode(name) == b"\n":
                return cls(separator, name)
        raise InputError(
            "--encoding: must be a character set such as utf-8, utf-16 or cp1252, got "
            f"{encoding!r}."
        )


DETECTED = FileFormat()
CSV = Dialect(",", '"')
TSV = Dialect("\t", None)
DEFAULT_DIALECTS = {".csv": CSV, ".tsv": TSV}


def separator_line(line: str) -> str | None:
    """Return the separator that a first line such as ``sep=;`` names; None for another line."""
    match = _SEPARATOR_LINE.fullmatch(line)
    return match.group(1) if match else None


def detect_dialect(head: str, default: Dialect, *, separator: str | None = None) -> Dialect:
    """Detect the dialect of a table from its first lines.

    The default, for which the suffix stands, is kept unless another dialect gives equal numbers of
    fields to more records. The last record may be incomplete.
    """
    first, _, rest = head.partition("\n")
    if (named := separator_line(first)) is not None:
        head = rest
        separator = separator or named
    if separator is not None:
        is_default = separator == default.separator
        return _with_quote(head, default if is_default else Dialect(separator, '"'))
    best = _with_quote(head, default)
    best_fit = _fit(head, best)
    if best_fit[0] == 1:
        return best
    for candidate in _SEPARATOR_NAMES:
        dialect = _with_quote(head, Dialect(candidate, default.quote or '"'))
        fit = _fit(head, dialect)
        if fit[0] > 0.5 and fit > best_fit:
            best, best_fit = dialect, fit
    return best


def _fit(head: str, dialect: Dialect) -> tuple[float, int]:
    """Return the share of records with as many fields as the header, and that number of fields."""
    counts = [len(fields) for fields in _head_records(head, dialect)]
    # A header of one field does not show that the separator is right.
    if not counts or counts[0] < 2:
        return 0, 0
    return counts.count(counts[0]) / len(counts), counts[0]


def _with_quote(head: str, dialect: Dialect) -> Dialect:
    """Detect the quote of a table with a known separator."""
    unquoted = dialect._replace(quote=None)
    header = next(iter(_head_records(head, unquoted)), [])
    for quote in "\"'":
        if header and all(_is_quoted(name.strip(), quote) for name in header):
            return dialect._replace(quote=quote)
    if dialect.quote is None:
        # Cells with a tab or a line end in quotes make the numbers of fields unequal.
        quoted = dialect._replace(quote='"')
        if _fit(head, quoted)[0] == 1 > _fit(head, unquoted)[0] > 0:
            return quoted
    return dialect


def _is_quoted(name: str, quote: str) -> bool:
    return len(name) > 1 and name[0] == name[-1] == quote


def _head_records(head: str, dialect: Dialect) -> list[list[str]]:
    """Split the first records, up to a fault, without blank lines."""
    lines = io.StringIO(head, newline="\n")
    if dialect.quote is None:
        texts = (line.rstrip("\r\n") for line in lines)
        return list(islice((text.split(dialect.separator) for text in texts if text), _RECORDS))
    reader = csv.reader(lines, delimiter=dialect.separator, quotechar=dialect.quote, strict=True)
    records: list[list[str]] = []
    # A fault in the table is reported when its rows are read.
    with suppress(csv.Error):
        records.extend(islice(filter(None, reader), _RECORDS))
    return records


def describe_dialect(dialect: Dialect, default: Dialect) -> list[str]:
    """Name what differs from the default."""
    parts = []
    if dialect.separator != default.separator:
        name = _SEPARATOR_NAMES.get(dialect.separator, repr(dialect.separator))
        parts.append(f"{name} between cells")
    is_expected = dialect.quote == '"' and dialect.separator != "\t"
    if dialect.quote not in (default.quote, None) and not is_expected:
        parts.append(f"quotes {dialect.quote} around cells")
    return parts


@lru_cache(maxsize=1024)
def log_form(path: Path, message: str) -> None:
    """Log once that a file is not in the form that its suffix stands for."""
    _LOGGER.info("%s: %s", printable(str(path)), message)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read its bytes; unpack a file whose name ends in ``.gz``."""
    with one_line(f"{path} cannot be opened", OSError):
        if path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        return path.open("rb")


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

    @property
    def is_excel(self) -> bool:
        """True for an Excel workbook, which is a zip file."""
        return bool(self.head) and self.head[0].startswith(_EXCEL_MAGIC)

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
        encoding = self.encoding(legacy=legacy)
        if encoding is not None and encoding.startswith("utf-16"):
            return self._utf_16_lines(encoding)
        return self._decoded_lines(encoding, legacy and self.file_format.encoding is None)

    def _decoded_lines(self, encoding: str | None, legacy: bool) -> Iterator[str]:
        """Decode UTF-8 or cp1252; the first line that is not ASCII decides if neither is known."""
        offset = 0
        for number, raw in enumerate(self._raw_lines(), start=1):
            if number == 1 and raw.startswith(_GZIP_MAGIC):
                raise InputError(f"{self.path}: is packed by gzip; its name must end in .gz.")
            if encoding is None and not raw.isascii():
                encoding = _line_encoding(raw) if legacy else "utf-8"
                if encoding == "cp1252":
                    form = f"read with text in cp1252, since line {number} is not UTF-8"
                    log_form(self.path, form)
            if legacy and encoding == "cp1252" and _UTF_8_LETTER.search(raw):
                raise InputError(
                    f"{location(self.path, line=number)}: is UTF-8, and lines before it are "
                    "cp1252. Write the file in one encoding."
                )
            text = self._decoded(raw, encoding or "utf-8", number=number, offset=offset)
            offset += len(raw)
            yield text.removeprefix("\ufeff") if number == 1 else text

    def _decoded(self, raw: bytes, encoding: str, *, number: int, offset: int) -> str:
        """Decode a line, given its number and the bytes before it, which a message states."""
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as error:
            name = "UTF-8" if encoding == "utf-8" else encoding
            where = location(self.path, line=number)
            raise InputError(
                f"{where}, byte {offset + error.start} of the file: not valid {name} "
                f"(0x{raw[error.start]:02x}, {error.reason}). Convert the file, for example "
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
            except UnicodeDecodeError as error:
                where = location(self.path, line=number)
                raise InputError(f"{where}: not valid UTF-16 ({error.reason}).") from None
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
        yield from self.head
        number = len(self.head)
        while raw := self._next_line(number):
            number += 1
            yield raw

    def _next_line(self, number: int) -> bytes:
        """Read the line after ``number`` lines; empty at the end of the file."""
        try:
            raw = self._stream.readline(MAX_LINE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            where = f"{self.path}, after line {number}"
            raise InputError(f"{where}: cannot be read ({error}).") from error
        if len(raw) > MAX_LINE_BYTES:
            raise self._long_line(number + 1)
        return raw

    def _long_line(self, number: int) -> InputError:
        return InputError(
            f"{location(self.path, line=number)}: is longer than {MAX_LINE_BYTES >> 20} MiB; lines "
            "must end with LF or CRLF."
        )


def _line_encoding(raw: bytes) -> str:
    """Tell UTF-8 from cp1252 by a line that is not ASCII."""
    # A line with both is damaged UTF-8, which decoding reports.
    if _UTF_8_LETTER.search(raw):
        return "utf-8"
    for encoding in ("utf-8", "cp1252"):
        try:
            raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "utf-8"
