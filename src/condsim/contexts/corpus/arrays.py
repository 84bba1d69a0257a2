"""Arrays and texts on disk: written as a stream, read by row through memory mapping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from condsim.errors import InputError, require
from condsim.types import IntArray


def spans(starts: IntArray, lengths: IntArray) -> IntArray:
    """All rows of several runs, ``(t,)``, given their first rows and lengths, both ``(u,)``."""
    ends = np.cumsum(lengths)
    rows: IntArray = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    return rows


class ArrayWriter:
    """Writes a one-dimensional ``.npy`` file of a length that is not known before.

    NumPy pads the header of such a file so that the length can grow in place: it is written again
    when the file is closed.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._stream = path.open("wb")
        self._header()
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Writes more numbers, ``(k,)``, converted to the type of the file."""
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self.length += len(values)

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, *_: object) -> None:
        with self._stream:
            self._stream.seek(0)
            self._header(self.length)

    def _header(self, length: int = 0) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(self._stream, header)


def open_array(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Opens a ``.npy`` file by memory mapping."""
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if values.dtype != np.dtype(dtype):
        raise InputError(f"{path.parent} is damaged: {path.name} holds {values.dtype} numbers.")
    return np.asarray(values)


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path.parent} is damaged: cannot read {path.name}: {error}")


BATCH = 1 << 15
"""Rows of each record batch but the last, so that the batch of a row is known."""


class TextWriter:
    """Writes texts to an Arrow file of one column ``text``, in batches of :data:`BATCH` rows."""

    def __init__(self, path: Path) -> None:
        self._pyarrow: Any = require("pyarrow", extra="contexts")
        self._schema = self._pyarrow.schema([("text", self._pyarrow.string())])
        self._writer = self._pyarrow.ipc.new_file(str(path), self._schema)
        self._waiting: list[str] = []

    def append(self, text: str) -> None:
        """Writes one text."""
        self._waiting.append(text)
        if len(self._waiting) == BATCH:
            self._flush()

    def __enter__(self) -> TextWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            column = self._pyarrow.array(self._waiting, self._pyarrow.string())
            self._writer.write_batch(self._pyarrow.record_batch([column], schema=self._schema))
            self._waiting = []


class TextReader:
    """Texts of a file of :class:`TextWriter`; batches are mapped when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pyarrow: Any = require("pyarrow", extra="contexts")
        try:
            self._source = self._pyarrow.memory_map(str(path))
            self._reader = self._pyarrow.ipc.open_file(self._source)
        except (OSError, self._pyarrow.ArrowException) as error:
            raise _unreadable(path, error) from error
        self._batches: dict[int, Any] = {}

    def take(self, ids: NDArray[np.integer[Any]]) -> list[str]:
        """Reads the texts of some rows, ``(k,)``, in any order."""
        rows = np.asarray(ids, dtype=np.int64)
        if not rows.size:
            return []
        order = np.argsort(rows, kind="stable")
        found: list[str] = []
        batches, starts = np.unique(rows[order] // BATCH, return_index=True)
        for batch, part in zip(batches.tolist(), np.split(order, starts[1:]), strict=True):
            places = self._pyarrow.array(rows[part] - batch * BATCH)
            found += self._batch(batch).take(places).to_pylist()
        texts = np.empty(len(rows), dtype=object)
        texts[order] = found
        return list(texts)

    def stream(self) -> Iterator[list[str]]:
        """Reads all texts without mapping: mapped pages would stay in memory."""
        with self._pyarrow.OSFile(str(self._path)) as source:
            reader = self._pyarrow.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number).column(0).to_pylist()

    def _batch(self, number: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
        if number not in self._batches:
            if not 0 <= number < self._reader.num_record_batches:
                raise IndexError(f"There is no row in batch {number} of {self._path}.")
            self._batches[number] = self._reader.get_batch(number).column(0)
        return self._batches[number]
