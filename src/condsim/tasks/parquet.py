"""Rows of Parquet files, by way of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from condsim.errors import InputError, require
from condsim.tasks.row import Row, check_header, place, typed_cell

__all__ = ["parquet_rows"]

_PARQUET_BATCH = 1024  # rows


def parquet_rows(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Streams the rows of a Parquet file, a batch of 1,024 rows at a time.

    Args:
        path: The file.
        columns: Columns that the file must have.
        optional: Columns that are None where the file lacks them.

    Yields:
        The rows, without line numbers.

    Raises:
        InputError: At the first place that breaks a rule of the format.
        MissingExtraError: If pyarrow is not installed.
    """
    parquet = require("pyarrow.parquet", extra="parquet")
    arrow_error = require("pyarrow", extra="parquet").ArrowException
    number = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            names = list(file.schema_arrow.names)
            check_header(path, names, columns)
            kept = [name for name in (*columns, *optional) if name in names]
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH, columns=kept):
                for record in batch.to_pylist():
                    number += 1
                    cells = {
                        name: typed_cell(record.get(name), place(path, row=number, column=name))
                        for name in (*columns, *optional)
                    }
                    yield Row(number, None, cells)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, after row {number}: text is not valid UTF-8 ({error.reason}). Write the "
            "file again with UTF-8 text."
        ) from None
    except (arrow_error, OSError) as error:
        raise InputError(
            f"{path}, after row {number}: not a whole Parquet file ({str(error).splitlines()[0]}). "
            "Write or copy it again."
        ) from None
