"""Excel workbooks, read with openpyxl: the first sheet as a table of texts."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from condsim.data.dialect import log_form
from condsim.errors import InputError, require

_ROWS_READ_AT_ONCE = 256


def excel_records(path: Path) -> Generator[tuple[int, list[str]], None, None]:
    """Stream the rows of the first sheet that are not blank; yield their numbers and cells."""
    number = 0
    # The header decides how many cells the other rows have.
    width = 0
    try:
        with path.open("rb") as stream:
            values = _first_sheet(path, stream)
            while rows := _next_rows(values):
                for row in rows:
                    number += 1
                    cells = [_cell_text(value) for value in row]
                    while len(cells) > width and not cells[-1]:
                        cells.pop()
                    if any(cells):
                        width = width or len(cells)
                        yield number, cells + [""] * (width - len(cells))
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, SyntaxError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}, after row {number}: not a complete Excel workbook ({reason})."
        ) from None


def _first_sheet(path: Path, stream: BinaryIO) -> Iterator[tuple[object, ...]]:
    openpyxl = require("openpyxl", extra="excel")
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


def _next_rows(values: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(islice(values, _ROWS_READ_AT_ONCE))


def _cell_text(value: object) -> str:
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
