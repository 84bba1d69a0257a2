"""Locks, resumable folders, and results that are computed once and cached.

Files survive ``kill -9``: interrupted work resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, one_line
from condsim.io import PARTIAL, write_text
from condsim.types import FloatArray


def digest(content: Mapping[str, object]) -> str:
    """Hash values that JSON can hold, in any order of keys: 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class BusyError(InputError):
    """Another process holds a lock."""


@contextmanager
def locked(path: Path, *, busy: str | None = None, wait: bool = True) -> Iterator[bool]:
    """Hold a lock file, which a killed process releases; its folder is created.

    If another process holds it, raise `BusyError` with the text ``busy``; wait where that is None;
    without ``wait`` run the block nevertheless. Yields whether the lock is held.
    """
    # Slow to import.
    import filelock

    lock = filelock.FileLock(path, timeout=-1 if wait and busy is None else 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout as error:
        if busy is not None:
            raise BusyError(busy) from error
        yield False
        return
    except OSError as error:
        raise InputError(f"Cannot write to {path.parent}: {error.strerror or error}.") from error
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def sole_process(folder: Path) -> Iterator[None]:
    """Create a folder and keep other processes out of it, by a lock next to it.

    In the end the lock is removed, and so is a folder that stayed empty.
    """
    busy = f"Another process is at work in {folder}. Wait until it ends, or give another folder."
    lock = folder.with_name(f"{folder.name}.lock")
    with locked(lock, busy=busy):
        with one_line(f"Cannot write to {folder}", OSError):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
                folder.rmdir()


def check_folder(folder: Path, *, subject: str, own: Iterable[str]) -> None:
    """Refuse a file, and a folder that contains files but none of those named in ``own``."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the {subject}.")
    # Files that a killed process left half-written do not count.
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    is_filled = any(not name.endswith(PARTIAL) for name in names)
    if is_filled and not any((folder / name).exists() for name in own):
        raise InputError(f"{folder} is not empty and contains no {subject}; give another folder.")


def check_inputs(path: Path, inputs: Mapping[str, Any], *, subject: str) -> None:
    """Check that the work in a folder, if it was begun, was begun with these inputs."""
    if path.is_file():
        with one_line(f"{path} cannot be read", OSError, ValueError):
            stored = dict(json.loads(path.read_text(encoding="utf-8")))
        plain = json.loads(json.dumps(inputs))
        check_unchanged(path.parent, changed_keys(plain, stored), subject=subject)


def record_inputs(path: Path, inputs: Mapping[str, Any], *, subject: str) -> None:
    """Write what decides the work in a folder, or check that it was begun with the same."""
    check_inputs(path, inputs, subject=subject)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(inputs, indent=2))


def changed_keys(expected: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    """List the keys of the expected values whose stored value differs."""
    return [key for key, value in expected.items() if stored.get(key) != value]


def check_unchanged(folder: Path | str, changed: Iterable[str], *, subject: str) -> None:
    """Refuse to continue what a folder holds with other inputs, which ``changed`` names."""
    if names := ", ".join(dict.fromkeys(changed)):
        raise InputError(
            f"{folder} holds {subject} of other inputs ({names} changed). Give another folder, or "
            "the same inputs."
        )


def open_array(path: Path) -> NDArray[Any]:
    """Open a ``.npy`` file by memory mapping."""
    with one_line(f"{path} cannot be read as an array (.npy)", OSError, ValueError, EOFError):
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def cached_rows(
    path: Path,
    compute: Callable[[int, int], NDArray[Any]],
    *,
    rows: int,
    inputs: Mapping[str, str] | None = None,
    block: int = 8_192,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[Any]:
    """Open an array in a ``.npy`` file, read-only, after computing the blocks that it lacks.

    ``compute`` gives the rows from a start to a stop, (stop - start, width). A ``.json`` file next
    to the array records the inputs and the progress; an array of other inputs is computed again. A
    second process waits for the first.
    """
    expected = {**(inputs or {}), "rows": rows, "block": block}
    array = _complete_array(path, expected)
    if array is not None:
        return array
    with locked(path.with_suffix(".lock")):
        array = _complete_array(path, expected)
        if array is None:
            with one_line(f"Cannot write {path}", OSError):
                _compute_blocks(path, compute, expected, progress)
            array = np.load(path, mmap_mode="r")
    return array


def _complete_array(path: Path, expected: Mapping[str, Any]) -> NDArray[Any] | None:
    """Open an array of these inputs; None if it is missing or was cut off, as by a full disk."""
    with suppress(OSError, ValueError, EOFError):
        if _record(path, expected).get("done") == expected["rows"]:
            array: NDArray[Any] = np.load(path, mmap_mode="r")
            return None if _partial_path(path).exists() else array
    return None


def _compute_blocks(
    path: Path,
    compute: Callable[[int, int], NDArray[Any]],
    expected: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
) -> None:
    """Write the missing blocks; the record follows each, so that a torn block is not counted."""
    rows, partial = int(expected["rows"]), _partial_path(path)
    record = _record(path, expected) if partial.is_file() else {}
    done, size = int(record.get("done", 0)), int(record.get("bytes", 0))
    with partial.open("r+b" if size else "w+b") as stream:
        stream.truncate(size)
        stream.seek(size)
        while done < rows:
            stop = min(done + int(expected["block"]), rows)
            values = np.ascontiguousarray(compute(done, stop))
            if not done:
                header = np.lib.format.header_data_from_array_1_0(values)
                header["shape"] = (rows, *values.shape[1:])
                np.lib.format.write_array_header_1_0(stream, header)
            stream.write(values.tobytes())
            stream.flush()
            done = stop
            _write_record(path, {**expected, "done": done, "bytes": stream.tell()})
            if progress is not None:
                progress(done, rows)
    partial.replace(path)
    _write_record(path, {**expected, "done": rows})


def _partial_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _record(path: Path, expected: Mapping[str, object]) -> dict[str, Any]:
    """Read the record of an array; empty if it is missing or about other inputs."""
    with suppress(OSError, ValueError):
        record: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if record.items() >= dict(expected).items():
            return record
    return {}


def _write_record(path: Path, record: Mapping[str, Any]) -> None:
    write_text(path.with_suffix(".json"), json.dumps(record))


class VectorCache:
    """Vectors of the most recent inputs, in memory; the oldest are overwritten."""

    def __init__(self, size: int, dimension: int) -> None:
        """Hold at most ``size`` vectors, one or more, of ``dimension`` numbers each."""
        self.size = size
        self._vectors = np.empty((size, dimension), np.float32)
        self._keys: list[str | tuple[str, ...] | None] = [None] * size
        self._index: dict[str | tuple[str, ...] | None, int] = {}
        self._next = 0

    def embed(
        self, inputs: Sequence[str] | Sequence[list[str]], embed: Callable[[Any], FloatArray]
    ) -> FloatArray:
        """Look up the vectors of m inputs, and embed those that are missing, (m, dimension)."""
        keys = [item if isinstance(item, str) else tuple(item) for item in inputs]
        index = np.array([self._index.get(key, -1) for key in keys], np.int64)
        vectors: FloatArray = self._vectors[index]
        missing = np.flatnonzero(index < 0).tolist()
        if missing:
            vectors[missing] = embed([inputs[row] for row in missing])
            for row in missing:
                self._index.pop(self._keys[self._next], None)
                self._keys[self._next], self._index[keys[row]] = keys[row], self._next
                self._vectors[self._next] = vectors[row]
                self._next = (self._next + 1) % self.size
        return vectors
