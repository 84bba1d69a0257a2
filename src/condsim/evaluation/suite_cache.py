"""Keeps what the suite has computed: scores by model and rows, bootstrap draws, drawn triplets.

Nothing here is told by name or date: a key is made of the version of the model, of the texts that
were scored and of the options, so a figure that is found is the figure that would be computed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim import __version__
from condsim.errors import InputError
from condsim.files import replacing, sha256_of
from condsim.tasks import Triplets, load_triplets, write_triplets
from condsim.types import Task

__all__ = ["Kept", "SuiteCache", "default_cache", "digest", "kept_triplets", "rows_digest"]

FORMAT = 1
"""Changes when the same model and rows are scored otherwise than before."""

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class Kept:
    """An array with what is known of its making.

    Attributes:
        values: The array.
        facts: Such as the versions of libraries and the seconds it took.
    """

    values: NDArray[Any]
    facts: Mapping[str, Any]


class SuiteCache:
    """Arrays in a folder, one file each. Files that are damaged count as not there.

    Attributes:
        folder: The folder; nothing is kept if None.
    """

    def __init__(self, folder: Path | None) -> None:
        """Takes the folder.

        Args:
            folder: The folder; made with the first array that is kept.
        """
        self.folder = folder
        self._told = False

    def get(self, key: Mapping[str, object]) -> Kept | None:
        """Looks an array up.

        Args:
            key: What it depends on: names and texts.

        Returns:
            The array; None if it is not there or cannot be read.
        """
        if self.folder is None:
            return None
        try:
            with (
                self._path(self.folder, key).open("rb") as stream,
                np.load(stream, allow_pickle=False) as stored,
            ):
                return Kept(stored["values"], json.loads(str(stored["facts"])))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: Mapping[str, object], kept: Kept) -> None:
        """Keeps an array; that it cannot be written is warned of once and no error.

        Args:
            key: What it depends on.
            kept: The array.
        """
        if self.folder is None:
            return
        path = self._path(self.folder, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial, partial.open("wb") as stream:
                np.savez(stream, values=kept.values, facts=np.array(json.dumps(dict(kept.facts))))
        except (OSError, InputError) as error:
            if not self._told:
                _LOGGER.warning("%s: nothing can be kept there (%s)", self.folder, error)
            self._told = True

    @staticmethod
    def _path(folder: Path, key: Mapping[str, object]) -> Path:
        return folder / f"{digest({'format': FORMAT, 'condsim': __version__, **key})}.npz"


def default_cache() -> Path:
    """Where the command line keeps figures.

    Returns:
        ``condsim/suite`` in the user's folder for caches (``XDG_CACHE_HOME``).
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "condsim" / "suite"


def digest(content: Mapping[str, object]) -> str:
    """Hashes plain values.

    Args:
        content: What JSON can hold.

    Returns:
        32 hexadecimal digits.
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def rows_digest(task: Task, *, labels: bool = False) -> str:
    """Hashes the rows of a task.

    Args:
        task: The rows.
        labels: Whether their labels count, as for what learns from them.

    Returns:
        32 hexadecimal digits; the name of the task and of its file do not count.
    """
    content: dict[str, object] = {
        "sentences1": task.sentences1,
        "sentences2": task.sentences2,
        "conditions": task.conditions,
    }
    if labels:
        content["labels"] = hashlib.sha256(task.gold.tobytes()).hexdigest()
    return digest(content)


def kept_triplets(folder: Path | None, text: Path, *, draw: Callable[[], Triplets]) -> Triplets:
    """Draws triplets from running text, or reads those drawn before.

    Args:
        folder: Where they are kept; None to draw them anew.
        text: The text, whose contents are the key.
        draw: Draws them.

    Returns:
        The triplets, named after the text.
    """
    if folder is None:
        return draw()
    whole = sha256_of(text)
    key = digest({"format": FORMAT, "condsim": __version__, "triplets": whole})
    path = folder / f"triplets-{key}.tsv"
    if not path.is_file():
        drawn = draw()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_triplets(drawn, path)
        except (OSError, InputError) as error:
            _LOGGER.warning("%s: nothing can be kept there (%s)", folder, error)
            return drawn
    read = load_triplets(path, name=text.name.partition(".")[0])
    return replace(read, revision=whole[:12])
