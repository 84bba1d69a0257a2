"""A set of 64-bit keys that costs eight bytes a key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condsim.types import BoolArray

__all__ = ["SeenKeys"]

Keys = NDArray[np.uint64]


class SeenKeys:
    """Keys seen so far, as sorted runs of which none is shorter than twice the next.

    Ten million keys cost 80 MB, and as much again while runs are merged; a Python set of as many
    numbers costs some 800 MB.
    """

    def __init__(self) -> None:
        """Starts with no key."""
        self._runs: list[Keys] = []

    def __len__(self) -> int:
        """Number of distinct keys seen."""
        return sum(len(run) for run in self._runs)

    def add(self, keys: Keys) -> BoolArray:
        """Adds keys and says which were new; thousands at a time are fastest.

        Args:
            keys: The keys in the order they come, ``(n,)``.

        Returns:
            Whether each key was seen here for the first time, ``(n,)``; of equal ones among them
            only the first can be.
        """
        distinct, first = np.unique(keys, return_index=True)
        known = np.zeros(len(distinct), dtype=np.bool_)
        for run in self._runs:
            place = np.searchsorted(run, distinct)
            np.minimum(place, len(run) - 1, out=place)
            known |= run[place] == distinct
        new = np.zeros(len(keys), dtype=np.bool_)
        new[first[~known]] = True
        self._append(distinct[~known])
        return new

    def _append(self, run: Keys) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            merged = np.concatenate([self._runs.pop(), last])
            merged.sort()
            self._runs.append(merged)
