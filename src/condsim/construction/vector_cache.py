"""Embeddings on disk: made block by block, so that a killed run loses one block at most."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.files import replacing
from condsim.types import FloatArray

__all__ = ["Progress", "cached_rows", "unit_length"]


class Progress(Protocol):
    """Is told how far a stage is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Takes the state.

        Args:
            stage: Name of the stage.
            done: What is done.
            total: What there is.
        """


def cached_rows(
    path: Path,
    compute: Callable[[int, int], NDArray[Any]],
    *,
    rows: int,
    block: int,
    stage: str,
    progress: Progress,
) -> NDArray[Any]:
    """Gives an array that is made once and kept in a file.

    Until it is whole, its blocks lie in a folder beside the file, each whole or not there; they go
    once the file is there.

    Args:
        path: The ``.npy`` file; its name must tell what the rows are made of.
        compute: Gives the rows from a start to a stop, ``(stop - start, width)`` of any type.
        rows: Number of rows.
        block: Rows of a block.
        stage: What to call it in the progress display.
        progress: Is told the rows done.

    Returns:
        The array, ``(rows, width)``, mapped from the file, read-only.

    Raises:
        InputError: If a file cannot be written.
    """
    if not path.is_file():
        folder = path.with_suffix(".blocks")
        folder.mkdir(parents=True, exist_ok=True)
        parts = []
        for start in range(0, rows, block):
            progress(stage, start, rows)
            part = folder / f"{start:012d}.npy"
            if not part.is_file():
                _save(part, compute(start, min(start + block, rows)))
            parts.append(part)
        progress(stage, rows, rows)
        _join(path, parts, rows)
        shutil.rmtree(folder)
    found: NDArray[Any] = np.load(path, mmap_mode="r")
    return found


def unit_length(vectors: FloatArray, *, what: str, first: int = 0) -> FloatArray:
    """Scales vectors to length 1.

    Args:
        vectors: The vectors, ``(n, width)``.
        what: What they are in errors, such as ``"vectors.npy"``.
        first: Number of the first row in errors, from 0.

    Returns:
        Vectors of length 1, ``(n, width)`` float32.

    Raises:
        InputError: If one is zero or not finite.
    """
    lengths = np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(
            f"{what}: every embedding must be finite and not zero; row {first + int(bad[0])} (from "
            f"0) and {len(bad) - 1} more are not. Compute them again."
        )
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


def _save(path: Path, rows: NDArray[Any]) -> None:
    with replacing(path) as partial, partial.open("wb") as stream:
        np.save(stream, rows)


def _join(path: Path, parts: list[Path], rows: int) -> None:
    first = np.load(parts[0], mmap_mode="r")
    with replacing(path) as partial:
        whole = np.lib.format.open_memmap(
            partial, mode="w+", dtype=first.dtype, shape=(rows, *first.shape[1:])
        )
        start = 0
        for part in parts:
            some = np.load(part)
            whole[start : start + len(some)] = some
            start += len(some)
        whole.flush()
