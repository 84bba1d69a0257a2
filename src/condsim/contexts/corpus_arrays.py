"""NumPy files that are written as a stream and opened by memory mapping."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from condsim.errors import InputError

__all__ = ["ArrayWriter", "open_array"]


class ArrayWriter:
    """Writes a one-dimensional ``.npy`` file of a length that is not known before.

    NumPy pads the header of such a file so that the length can grow in place: it is written again
    when the file is closed.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        """Opens the file.

        Args:
            path: The file, its suffix ``.npy``.
            dtype: Type of its numbers.
        """
        self._dtype = np.dtype(dtype)
        self._stream = path.open("wb")
        self._header()
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Writes some more numbers.

        Args:
            values: The numbers, ``(k,)``; converted to the type of the file.
        """
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self.length += len(values)

    def __enter__(self) -> ArrayWriter:
        """Returns the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Writes the length and closes the file."""
        with self._stream:
            self._stream.seek(0)
            self._header(self.length)

    def _header(self, length: int = 0) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(self._stream, header)


def open_array(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Opens a ``.npy`` file by memory mapping.

    Args:
        path: The file.
        dtype: The type its numbers must have.

    Returns:
        The numbers, read-only.

    Raises:
        InputError: If the file is missing, damaged or of another type.
    """
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path.parent} is damaged: cannot read {path.name}: {error}") from error
    if values.dtype != np.dtype(dtype):
        raise InputError(f"{path.parent} is damaged: {path.name} holds {values.dtype} numbers.")
    return np.asarray(values)
