"""Work that is made once and kept: locks, manifests, arrays, scores; vectors in memory."""

# Everything on disk survives ``kill -9``: a file or folder is whole or not there, and half-made
# work goes on where it stopped. Names and manifests carry a hash of the inputs, so that kept work
# is found again only for the same inputs.

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
_LOGGER = logging.getLogger("condsim")
_SCORE = re.compile(rb"([0-9a-f]{32}) ([+-]\d\.\d{8}e[+-]\d\d)\n")  # enough for a float32


def digest(content: Mapping[str, object]) -> str:
    """Hashes values that JSON can hold, in whichever order: 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class BusyError(InputError):
    """Another process holds a lock."""


@contextmanager
def locked(path: Path, *, busy: str | None = None, wait: bool = True) -> Iterator[bool]:
    """Holds a lock file, whose folder is made; the lock dies with its process."""
    # If another process holds it, this raises `BusyError` with the text ``busy``, waits where that
    # is None, or without ``wait`` runs the block all the same; what is yielded says which.
    filelock = require("filelock", extra="train")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path, timeout=-1 if wait and busy is None else 0)
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
    """Keeps other processes from the work in a folder, which is made; the lock is beside it."""
    busy = (
        f"Another process is at work in {folder}. Wait until it has ended, or give another folder."
    )
    with locked(folder.with_name(f"{folder.name}.lock"), busy=busy):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write to {folder}: {error.strerror or error}.") from error
        yield


def read_manifest(folder: Path, *, what: str) -> dict[str, Any] | None:
    """Reads the manifest of a folder that must hold ``what``; None if it is missing or empty."""
    check_folder(folder, what=what, own=[MANIFEST])
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the {what} in {folder}: {MANIFEST}: {error}.") from error
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or kind != what:
        raise InputError(f"{folder} holds no {what} (it says {kind!r}); give another folder.")
    return manifest


def need_manifest(folder: Path, *, what: str, version: int, made_by: str) -> dict[str, Any]:
    """Reads the manifest of a folder that must be there, with ``version`` as its ``format``."""
    manifest = read_manifest(folder, what=what)
    if manifest is None:
        raise InputError(f"{folder} holds no {what}; make it with {made_by}.")
    if manifest.get("format") != version:
        raise InputError(f"{folder} was made by another version of condsim; make it anew.")
    return manifest


def write_manifest(folder: Path, values: Mapping[str, Any], *, what: str) -> None:
    """Writes the manifest of a folder, as its last file."""
    text = json.dumps({"kind": what, **values}, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / MANIFEST, text)


def changed_values(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Says of each wanted value that differs: ``"max_words is 60, not 50"``."""
    return [
        f"{key} is {found.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if found.get(key) != value
    ]


@contextmanager
def build_once(folder: Path, *, what: str) -> Iterator[Path | None]:
    """Gives an empty folder to build in, renamed to ``folder`` on success."""
    # A second process waits and is then given None. What a killed process left is removed.
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
                if folder.is_dir():
                    folder.rmdir()  # it is empty
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write the {what} {folder}: {reason}.") from error


def kept_rows(
    path: Path,
    compute: Callable[[int, int], NDArray[Any]],  # rows start to stop, (stop - start, width)
    *,
    rows: int,
    inputs: Mapping[str, str] | None = None,  # may be left out where ``path`` tells them
    block: int = 8_192,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[Any]:
    """Computes an array block by block and keeps it as ``.npy``, or opens it, read-only."""
    # A half-written array goes on after its last whole block; one of other inputs is made anew. A
    # second process waits for the first. A ``.json`` beside the file says what it holds.
    wanted = {**(inputs or {}), "rows": rows, "block": block}
    if not _is_whole(path, wanted):
        with locked(path.with_suffix(".lock")):
            if not _is_whole(path, wanted):
                try:
                    _compute_rows(path, compute, wanted, progress=progress)
                except OSError as error:
                    reason = error.strerror or str(error)
                    raise InputError(f"Cannot write {path}: {reason}.") from error
    found: NDArray[Any] = np.load(path, mmap_mode="r")
    return found


def _is_whole(path: Path, wanted: Mapping[str, object]) -> bool:
    """Whether the array is there; one that was cut off, as by a full disk, is not."""
    if _partial(path).exists():
        return False
    try:
        np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return _holds(_read_record(path), wanted)


def _compute_rows(
    path: Path,
    compute: Callable[[int, int], NDArray[Any]],
    wanted: Mapping[str, Any],
    *,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Writes the blocks that are missing; the record is written after each."""
    rows, block, partial = int(wanted["rows"]), int(wanted["block"]), _partial(path)
    known = _read_record(path)
    done = int(known.get("done", 0)) if _holds(known, wanted) and partial.is_file() else 0
    if not done:
        path.unlink(missing_ok=True)
    with partial.open("r+b" if done else "w+b") as stream:
        if done:
            np.lib.format.read_magic(stream)
            shape, _, kind = np.lib.format.read_array_header_1_0(stream)
            stream.seek(stream.tell() + done * int(np.prod(shape[1:])) * kind.itemsize)
            stream.truncate()  # a block that was not recorded is computed again
        while done < rows:
            stop = min(done + block, rows)
            part = np.ascontiguousarray(compute(done, stop))
            if not done:
                header = np.lib.format.header_data_from_array_1_0(part)
                header["shape"] = (rows, *part.shape[1:])
                np.lib.format.write_array_header_1_0(stream, header)
            stream.write(part.tobytes())
            stream.flush()
            done = stop
            write_text(path.with_suffix(".json"), json.dumps({**wanted, "done": done}))
            if progress is not None:
                progress(done, rows)
    partial.replace(path)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _read_record(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _holds(known: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return {key: known.get(key) for key in wanted} == dict(wanted)


@dataclass(frozen=True, eq=False)
class Kept:
    """An array with what is known of its making."""

    values: NDArray[Any]
    facts: Mapping[str, Any]  # such as the versions of libraries and the seconds it took


class KeptArrays:
    """Arrays in a folder, if any, one file for each key; a damaged file counts as missing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._warned = False

    def get(self, key: Mapping[str, object]) -> Kept | None:
        """Looks up the array of a key: what it depends on, in values that JSON can hold."""
        if self.folder is None:
            return None
        path = self.folder / f"{digest({'condsim': __version__, **key})}.npz"
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                return Kept(stored["values"], json.loads(str(stored["facts"])))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: Mapping[str, object], kept: Kept) -> None:
        """Keeps an array; a folder that cannot be written is warned of once."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{digest({'condsim': __version__, **key})}.npz"
            with replacing(path) as partial, partial.open("wb") as stream:
                np.savez(stream, values=kept.values, facts=np.array(json.dumps(dict(kept.facts))))
        except (OSError, InputError) as error:
            if not self._warned:
                _LOGGER.warning("%s: nothing can be kept there (%s)", self.folder, error)
            self._warned = True


class KeptScores:
    """Scores of pairs in a growing file, named after ``revision``: all that decides a score."""

    def __init__(self, folder: Path, revision: str) -> None:
        self._path = folder / f"{revision}.txt"
        self._warned = False

    def find(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Looks up the scores of pairs, ``(n,)``; NaN where there is none."""
        try:
            lines = _SCORE.findall(self._path.read_bytes())
        except OSError:
            lines = []
        known = {key.decode(): float(value) for key, value in lines}
        keys = map(_pair_key, sentences1, sentences2)
        return np.array([known.get(key, np.nan) for key in keys], np.float32)

    def add(
        self, sentences1: Sequence[str], sentences2: Sequence[str], scores: Sequence[float]
    ) -> None:
        """Keeps scores, each of length n; a file that cannot be written is warned of once."""
        pairs = zip(sentences1, sentences2, scores, strict=True)
        lines = ["\n"]  # what was cut off before must not run into the first line
        lines += [f"{_pair_key(one, two)} {np.float32(score):+.8e}\n" for one, two, score in pairs]
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab", buffering=0) as stream:
                stream.write("".join(lines).encode())
        except OSError as error:
            if not self._warned:
                _LOGGER.warning("%s: scores cannot be kept there (%s)", self._path.parent, error)
            self._warned = True


def _pair_key(sentence1: str, sentence2: str) -> str:
    content = json.dumps([sentence1, sentence2]).encode()
    return hashlib.sha256(content).hexdigest()[:32]


class RecentVectors:
    """The vectors of what was embedded last, in memory; the oldest makes room."""

    def __init__(self, number: int, dimension: int) -> None:
        """Keeps ``number`` vectors at most, one or more, of ``dimension`` numbers each."""
        self.number = number
        self._vectors = np.empty((number, dimension), np.float32)
        self._keys: list[str | tuple[str, ...] | None] = [None] * number
        self._place: dict[str | tuple[str, ...] | None, int] = {}
        self._next = 0

    def embed(
        self, inputs: Sequence[str] | Sequence[list[str]], embed: Callable[[Any], FloatArray]
    ) -> FloatArray:
        """Embeds inputs, m, those alone that are not kept; returns (m, dimension)."""
        keys = [one if isinstance(one, str) else tuple(one) for one in inputs]
        places = np.array([self._place.get(key, -1) for key in keys], np.int64)
        vectors: FloatArray = self._vectors[places]
        if new := np.flatnonzero(places < 0).tolist():
            vectors[new] = embed([inputs[number] for number in new])
            for number in new:
                self._keep(keys[number], vectors[number])
        return vectors

    def _keep(self, key: str | tuple[str, ...], vector: FloatArray) -> None:
        self._place.pop(self._keys[self._next], None)
        self._keys[self._next], self._place[key] = key, self._next
        self._vectors[self._next] = vector
        self._next = (self._next + 1) % len(self._keys)
