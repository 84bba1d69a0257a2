"""Reader of Excel workbooks, with openpyxl."""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import IO, BinaryIO, cast

from condsim.data.readers import Records, TableReader
from condsim.data.row import MAX_CELL_CHARACTERS, location, long_cell_error
from condsim.data.text import log_form
from condsim.errors import CondSimError, InputError, reason_of, require

_ROWS_READ_AT_ONCE = 256
_MAX_TITLES = 3
_CHUNK_BYTES = 1024 * 1024
# A character may take six bytes in XML.
_MAX_CELL_BYTES = 8 * MAX_CELL_CHARACTERS
_MAX_TEXTS_BYTES = 256 * 1024 * 1024
# The styles, for example, which openpyxl holds as a tree.
_MAX_PART_BYTES = 16 * 1024 * 1024
_CELL_START = re.compile(rb"<(?:\w+:)?(?:c|row|si)[\s>/]")


class WorkbookReader(TableReader):
    """Reader of the first sheet of a workbook, whose name may end in any suffix of a table."""

    advice = "Give the column a name in the first row, or empty the cell."

    def records(self) -> Records:
        """Read the rows of the first sheet that are not blank, without titles above the header."""
        return _below_titles(self.path, _excel_records(self.path))


def _below_titles(path: Path, records: Records) -> Records:
    """Drop up to three rows of one cell, if the next two have several: a header and a row."""
    above: list[tuple[int, list[str]]] = []
    for record in records:
        above.append(record)
        if _is_wide(record) or len(above) > _MAX_TITLES:
            break
    below = list(islice(records, 1))
    if len(above) > 1 and below and all(map(_is_wide, [above[-1], *below])):
        log_form(path, f"the header is in row {above[-1][0]}, below {above[0][1][0]!r}")
        del above[:-1]
    yield from chain(above, below, records)


def _is_wide(record: tuple[int, list[str]]) -> bool:
    return len(list(filter(str.strip, record[1]))) > 1


def _excel_records(path: Path) -> Records:
    openpyxl = require("openpyxl", extra="excel")
    number = 0
    # The header decides how many cells the other rows have; above it, a title has one.
    width = 0
    try:
        with path.open("rb") as stream:
            _check_sizes(path, stream)
            values = _first_sheet(path, stream, openpyxl)
            while block := _next_values(values):
                for row in block:
                    number += 1
                    cells = [_excel_text(value) for value in row]
                    while len(cells) > width and not cells[-1].strip():
                        cells.pop()
                    longest = max(map(len, cells), default=0)
                    if longest > MAX_CELL_CHARACTERS:
                        raise long_cell_error(location(path, row=number), longest)
                    if any(cells):
                        yield number, cells + [""] * (width - len(cells))
                        width = width or (len(cells) if len(cells) > 1 else 0)
    except CondSimError:
        raise
    # A damaged file makes openpyxl raise errors of many classes.
    except Exception as error:
        raise InputError(
            f"{path}, after row {number}: not a complete Excel workbook ({reason_of(error)})."
        ) from None


def _check_sizes(path: Path, stream: BinaryIO) -> None:
    """Reject a file that takes much more memory than a workbook, before openpyxl reads it."""
    with zipfile.ZipFile(stream) as archive:
        if "[Content_Types].xml" not in archive.namelist():
            raise InputError(
                f"{path}: is a zip archive and no workbook; the name of a packed table must end in "
                ".zip."
            )
        for entry in archive.infolist():
            name = entry.filename
            is_sheet = name.startswith("xl/worksheets/sheet")
            limit = _MAX_TEXTS_BYTES if name == "xl/sharedStrings.xml" else _MAX_PART_BYTES
            if name.endswith(".xml") and not is_sheet and entry.file_size > limit:
                raise InputError(
                    f"{path}: its part {name} has {entry.file_size >> 20:,} MiB; at most "
                    f"{limit >> 20} are read. Save the sheet as CSV."
                )
            if is_sheet or name == "xl/sharedStrings.xml":
                with archive.open(entry) as part:
                    if _longest_cell(part) > _MAX_CELL_BYTES:
                        raise InputError(
                            f"{path}: a cell has more than {MAX_CELL_CHARACTERS:,} characters, "
                            "which is the limit."
                        )


def _longest_cell(part: IO[bytes]) -> int:
    """Return the number of bytes of the longest cell of a sheet, as it is written in XML."""
    longest = length = 0
    while chunk := part.read(_CHUNK_BYTES):
        first, *rest = map(len, _CELL_START.split(chunk))
        length += first
        longest = max(longest, length, *rest)
        length = rest[-1] if rest else length
    return longest


def _first_sheet(
    path: Path, stream: BinaryIO, openpyxl: ModuleType
) -> Iterator[tuple[object, ...]]:
    # openpyxl warns of styles and checks of cells that it does not read.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
    sheet = book.worksheets[0]
    # The size that a sheet states may be wrong.
    sheet.reset_dimensions()
    if len(book.worksheets) > 1:
        log_form(path, f"read from the first of {len(book.worksheets)} sheets, {sheet.title!r}")
    return cast(Iterator[tuple[object, ...]], sheet.iter_rows(values_only=True))


def _next_values(values: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(islice(values, _ROWS_READ_AT_ONCE))


def _excel_text(value: object) -> str:
    """Format a cell as text: whole numbers without a point, dates as ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)
