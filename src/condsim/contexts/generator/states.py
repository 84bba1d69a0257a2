"""Encoder states that are kept: a unit of a context that comes up again is not encoded again.

With ``encoder: apart`` the states of a sentence at a place of a context depend on nothing else, and
contexts that suit one sentence often suit others. Whether states are kept or computed anew decides
memory and speed, not the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from condsim.types import IntArray

_GB = 10**9


class StateStore:
    """States by unit, as many as fit; those that come first stay."""

    def __init__(self, gigabytes: float) -> None:
        self._bytes = int(gigabytes * _GB)
        self._starts: dict[int, int] = {}
        self._states = torch.empty(0, 0)  # as wide as the states that come
        self._used = 0

    def starts(self, keys: Sequence[int]) -> IntArray:
        """Looks for units.

        Returns:
            First row of each in the store, ``(u,)``; -1 where it is not kept.
        """
        return np.array([self._starts.get(key, -1) for key in keys], dtype=np.int64)

    def take(self, rows: IntArray) -> Tensor:
        """Gives states.

        Args:
            rows: Rows of the store, ``(t,)``; some were kept before.

        Returns:
            Their states, ``(t, d)``.
        """
        return self._states[torch.from_numpy(rows).to(self._states.device)]

    def keep(self, keys: Sequence[int], lengths: IntArray, states: Tensor) -> None:
        """Keeps units as long as there is room.

        Args:
            lengths: Tokens of each, ``(u,)``.
            states: States of all tokens in that order, ``(t, d)``.
        """
        if not len(self._states):
            rows = self._bytes // (states.shape[1] * states.element_size())
            self._states = states.new_empty(rows, states.shape[1])
        wanted = np.array(keys, dtype=np.int64) >= 0
        ends = self._used + np.cumsum(np.where(wanted, lengths, 0))
        wanted &= ends <= len(self._states)
        taken = np.repeat(wanted, lengths)
        end = self._used + int(taken.sum())
        self._states[self._used : end] = states[torch.from_numpy(taken).to(states.device)]
        for place in np.flatnonzero(wanted).tolist():
            self._starts[keys[place]] = int(ends[place] - lengths[place])
        self._used = end
