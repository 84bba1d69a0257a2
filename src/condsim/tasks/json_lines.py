"""Rows of files with one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from condsim.errors import InputError
from condsim.tasks.lines import decoded_lines, open_bytes
from condsim.tasks.row import Row, check_columns, place, shown, typed_cell

__all__ = ["json_rows"]


def json_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a file with one JSON object a line.

    Args:
        path: The file.
        columns: Columns that the file must have.
        optional: Columns that are None where the file lacks them.

    Yields:
        The rows.

    Raises:
        InputError: At the first place that breaks a rule of the format.
    """
    number = 0
    with open_bytes(path) as stream:
        for line, text in enumerate(decoded_lines(path, stream), start=1):
            if not text.strip():
                continue
            number += 1
            where = place(path, row=number, line=line)
            try:
                record = json.loads(text)
            except (ValueError, RecursionError) as error:
                reason = (
                    f"{error.msg} at character {error.pos + 1}"
                    if isinstance(error, json.JSONDecodeError)
                    else str(error)
                )
                raise InputError(
                    f"{where}: not valid JSON ({reason}). Each line must be one whole object, "
                    'such as {"sentence1": "...", ...}.'
                ) from None
            if not isinstance(record, dict):
                raise InputError(
                    f"{where}: must be a JSON object, got {shown(record)}. Write one object a "
                    "line, without a list around them."
                )
            check_columns(where, list(record), columns)
            cells = {
                name: typed_cell(record.get(name), place(path, row=number, line=line, column=name))
                for name in (*columns, *optional)
            }
            yield Row(number, line, cells)
