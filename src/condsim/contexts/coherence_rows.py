"""Rows computed for a whole corpus, written in blocks: a kill loses one block at most."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.errors import require
from condsim.files import replacing

__all__ = ["computed_rows"]


def computed_rows(
    path: Path,
    *,
    shape: tuple[int, int],
    identity: Mapping[str, str],
    rows: Callable[[int, int], NDArray[np.float32]],
    block: int = 8_192,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float16]:
    """Computes an array row by row and keeps it on disk, or opens it if it was kept before.

    A half-written file is continued. One of another identity is written over. Another process that
    asks for the same array waits for it.

    Args:
        path: The ``.npy`` file; a ``.json`` beside it says what it holds.
        shape: Rows and columns, ``(n, d)``.
        identity: What the rows are computed from.
        rows: Gives the rows from the first up to the last, ``(last - first, d)``.
        block: Rows computed at a time.
        progress: Called after each block with the rows done and their number.

    Returns:
        The array, ``(n, d)`` float16, memory-mapped.

    Raises:
        OSError: If the disk is full; what was written up to then is kept.
        MissingExtraError: If the ``contexts`` extra is not installed.
    """
    wanted = {**identity, "rows": shape[0], "columns": shape[1], "block": block}
    if not _is_finished(path, wanted):
        filelock = require("filelock", extra="contexts")
        with filelock.FileLock(path.with_suffix(".lock")):
            if not _is_finished(path, wanted):
                _compute(path, wanted, shape=shape, rows=rows, block=block, progress=progress)
    array: NDArray[np.float16] = np.load(path, mmap_mode="r")
    return array


def _is_finished(path: Path, wanted: Mapping[str, object]) -> bool:
    """Whether the array is there; one that was cut off, as by a full disk, is not."""
    if path.with_suffix(".npy.partial").exists():
        return False
    try:
        np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return _holds(_read(path.with_suffix(".json")), wanted)


def _holds(known: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return {key: known.get(key) for key in wanted} == wanted


def _compute(
    path: Path,
    wanted: Mapping[str, object],
    *,
    shape: tuple[int, int],
    rows: Callable[[int, int], NDArray[np.float32]],
    block: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Writes the blocks that are missing."""
    record, partial = path.with_suffix(".json"), path.with_suffix(".npy.partial")
    known = _read(record)
    same = _holds(known, wanted)
    done = int(str(known.get("done", 0))) if same and partial.is_file() else 0
    if not done:
        path.unlink(missing_ok=True)
    with partial.open("r+b" if done else "wb") as stream:
        header = {"descr": "<f2", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        width = 2 * shape[1]
        stream.seek(stream.tell() + done * width)
        stream.truncate()  # a block that was not recorded is computed again
        while done < shape[0]:
            last = min(done + block, shape[0])
            stream.write(rows(done, last).astype("<f2").tobytes())
            stream.flush()
            done = last
            with replacing(record) as written:
                written.write_text(json.dumps({**wanted, "done": done}), encoding="utf-8")
            if progress is not None:
                progress(done, shape[0])
    partial.replace(path)


def _read(path: Path) -> dict[str, object]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
