"""Arrays that are computed once and cached in a folder."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim import __version__
from condsim.cache import digest
from condsim.errors import InputError
from condsim.io import replacing

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class CachedArray:
    """An array with facts such as the versions of libraries and the seconds it took."""

    values: NDArray[Any]
    facts: Mapping[str, Any]


class ArrayCache:
    """Arrays in a folder, if any, one file for each key; a damaged file counts as missing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: Mapping[str, object]) -> CachedArray | None:
        """Look up the array of a key: its inputs, as values that JSON can hold."""
        if self._folder is None:
            return None
        try:
            with self._path(self._folder, key).open("rb") as stream:
                content = np.load(stream, allow_pickle=False)
                return CachedArray(content["values"], json.loads(str(content["facts"])))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: Mapping[str, object], cached: CachedArray) -> None:
        """Store an array; warn once if the folder cannot be written."""
        if self._folder is None:
            return
        facts = np.array(json.dumps(dict(cached.facts)))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(self._folder, key)) as partial, partial.open("wb") as stream:
                np.savez(stream, values=cached.values, facts=facts)
        except (OSError, InputError) as error:
            _LOGGER.warning("Cannot cache arrays in %s: %s", self._folder, error)
            self._folder = None

    @staticmethod
    def _path(folder: Path, key: Mapping[str, object]) -> Path:
        return folder / f"{digest({'condsim': __version__, **key})}.npz"
