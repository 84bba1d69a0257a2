"""Locks, manifests, and results that are computed once and cached on disk or in memory.

Files survive ``kill -9``: a file or folder is complete or missing, and interrupted work resumes
where it stopped. Names and manifests contain a hash of the inputs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim import __version__
from condsim.errors import InputError, require
from condsim.io import check_folder, replacing, write_text
from condsim.types import FloatArray

MANIFEST = "manifest.json"
_LOGGER = logging.getLogger(__name__)


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
    filelock = require("filelock", extra="train")
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
    """Create a folder and keep other processes out of it, by a lock next to it."""
    busy = f"Another process is at work in {folder}. Wait until it ends, or give another folder."
    with locked(folder.with_name(f"{folder.name}.lock"), busy=busy):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write to {folder}: {error.strerror or error}.") from error
        yield


def read_manifest(folder: Path, *, what: str) -> dict[str, Any] | None:
    """Read the manifest of a folder that must contain ``what``; None if missing or empty."""
    check_folder(folder, what=what, own=[MANIFEST])
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the {what} in {folder}: {MANIFEST}: {error}.") from error
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or kind != what:
        raise InputError(f"{folder} contains a {kind!r}, not a {what}; give another folder.")
    return manifest


def need_manifest(folder: Path, *, what: str, version: int, made_by: str) -> dict[str, Any]:
    """Read the manifest of a folder, which must exist with ``version`` as its ``format``."""
    manifest = read_manifest(folder, what=what)
    if manifest is None:
        raise InputError(f"{folder} contains no {what}; make it with {made_by}.")
    if manifest.get("format") != version:
        raise InputError(f"{folder} was made by another version of condsim; make it again.")
    return manifest


def write_manifest(folder: Path, values: Mapping[str, Any], *, what: str) -> None:
    """Write the manifest of a folder, as its last file."""
    text = json.dumps({"kind": what, **values}, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / MANIFEST, text)


def changed_values(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    """Describe each expected value that differs: ``"max_words is 60, not 50"``."""
    return [
        f"{key} is {actual.get(key)!r}, not {value!r}"
        for key, value in expected.items()
        if actual.get(key) != value
    ]


@contextmanager
def build_once(folder: Path, *, what: str) -> Iterator[Path | None]:
    """Yield an empty folder to build in, renamed to ``folder`` on success.

    A second process waits and then gets None. What a killed process wrote is removed.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        with locked(folder.with_name(f"{folder.name}.lock")):
            if read_manifest(folder, what=what) is not None:
                yield None
                return
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            try:
                yield partial
                # An empty folder of that name may exist.
                with suppress(FileNotFoundError):
                    folder.rmdir()
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write the {what} {folder}: {reason}.") from error


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

    A ``.json`` file next to it records the inputs and the progress. An array of other inputs is
    computed again. A second process waits for the first.

    Args:
        compute: Gives the rows from a start to a stop, (stop - start, width).
        inputs: What the array depends on; may be left out where ``path`` says it.
        block: Rows computed at once.
        progress: Called with the rows done and the number of rows.
    """
    expected = {**(inputs or {}), "rows": rows, "block": block}
    if not _is_complete(path, expected):
        with locked(path.with_suffix(".lock")):
            if not _is_complete(path, expected):
                try:
                    _compute_blocks(path, compute, expected, progress)
                except OSError as error:
                    reason = error.strerror or str(error)
                    raise InputError(f"Cannot write {path}: {reason}.") from error
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array


def _is_complete(path: Path, expected: Mapping[str, object]) -> bool:
    """Check that an array of these inputs exists and was not cut off, as by a full disk."""
    try:
        np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return not _partial_path(path).exists() and bool(_matching_record(path, expected))


def _compute_blocks(
    path: Path,
    compute: Callable[[int, int], NDArray[Any]],
    expected: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
) -> None:
    """Write the missing blocks; the record follows each, so that a torn block is not counted."""
    rows, block, partial = int(expected["rows"]), int(expected["block"]), _partial_path(path)
    record = _matching_record(path, expected) if partial.is_file() else {}
    done, size = int(record.get("done", 0)), int(record.get("bytes", 0))
    if not size:
        done = 0
        path.unlink(missing_ok=True)
    with partial.open("r+b" if done else "w+b") as stream:
        stream.truncate(size)
        stream.seek(size)
        while done < rows:
            stop = min(done + block, rows)
            values = np.ascontiguousarray(compute(done, stop))
            if not done:
                header = np.lib.format.header_data_from_array_1_0(values)
                header["shape"] = (rows, *values.shape[1:])
                np.lib.format.write_array_header_1_0(stream, header)
            stream.write(values.tobytes())
            stream.flush()
            done = stop
            record = {**expected, "done": done, "bytes": stream.tell()}
            write_text(path.with_suffix(".json"), json.dumps(record))
            if progress is not None:
                progress(done, rows)
    partial.replace(path)
    write_text(path.with_suffix(".json"), json.dumps({**expected, "done": rows}))


def _partial_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _matching_record(path: Path, expected: Mapping[str, object]) -> dict[str, Any]:
    """Read the record of an array; empty if it is missing or about other inputs."""
    with suppress(OSError, ValueError):
        record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if isinstance(record, dict) and record.items() >= dict(expected).items():
            return record
    return {}


@dataclass(frozen=True, eq=False)
class CachedArray:
    """An array with facts such as the versions of libraries and the seconds it took."""

    values: NDArray[Any]
    facts: Mapping[str, Any]


class ArrayCache:
    """Arrays in a folder, if any, one file for each key; a damaged file counts as missing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._warned = False

    def get(self, key: Mapping[str, object]) -> CachedArray | None:
        """Look up the array of a key: its inputs, as values that JSON can hold."""
        if self.folder is None:
            return None
        try:
            with self._path(self.folder, key).open("rb") as stream:
                content = np.load(stream, allow_pickle=False)
                return CachedArray(content["values"], json.loads(str(content["facts"])))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: Mapping[str, object], cached: CachedArray) -> None:
        """Store an array; warn once if the folder cannot be written."""
        if self.folder is None:
            return
        facts = np.array(json.dumps(dict(cached.facts)))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(self.folder, key)) as partial, partial.open("wb") as stream:
                np.savez(stream, values=cached.values, facts=facts)
        except (OSError, InputError) as error:
            if not self._warned:
                _LOGGER.warning("Cannot cache arrays in %s: %s", self.folder, error)
            self._warned = True

    def _path(self, folder: Path, key: Mapping[str, object]) -> Path:
        return folder / f"{digest({'condsim': __version__, **key})}.npz"


class ScoreCache:
    """Scores of pairs in a growing file, named after a hash of all that decides a score."""

    # Digits enough for a float32; a line that was cut off does not match.
    _LINE = re.compile(rb"([0-9a-f]{32}) ([+-]\d\.\d{8}e[+-]\d\d)\n")

    def __init__(self, folder: Path, revision: str) -> None:
        self._path = folder / f"{revision}.txt"
        self._warned = False

    def find(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Look up the scores of pairs, ``(n,)``; NaN where there is none."""
        content = self._path.read_bytes() if self._path.is_file() else b""
        scores = {key.decode(): float(value) for key, value in self._LINE.findall(content)}
        keys = map(self._key, sentences1, sentences2)
        return np.array([scores.get(key, np.nan) for key in keys], np.float32)

    def add(
        self, sentences1: Sequence[str], sentences2: Sequence[str], scores: Sequence[float]
    ) -> None:
        """Store scores, each of length n; warn once if the file cannot be written."""
        # A blank line keeps what was cut off before apart from the first line.
        lines = ["\n"]
        for sentence1, sentence2, score in zip(sentences1, sentences2, scores, strict=True):
            lines.append(f"{self._key(sentence1, sentence2)} {np.float32(score):+.8e}\n")
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab", buffering=0) as stream:
                stream.write("".join(lines).encode())
        except OSError as error:
            if not self._warned:
                _LOGGER.warning("Cannot cache scores in %s: %s", self._path.parent, error)
            self._warned = True

    @staticmethod
    def _key(sentence1: str, sentence2: str) -> str:
        content = json.dumps([sentence1, sentence2]).encode()
        return hashlib.sha256(content).hexdigest()[:32]


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
