"""Scores of an origin model on disk as they are made: a run that was killed does not begin anew.

A file of lines, one for a pair: the hash of its texts and the cosine of Eq. 4. Lines are only ever
added, in one write for a batch, so several processes may share the file. A line that a kill or a
full disk cut off is shorter than the others and does not count.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from condsim.types import FloatArray

__all__ = ["KeptScores"]

_LINE = re.compile(rb"([0-9a-f]{32}) ([+-]\d\.\d{8}e[+-]\d\d)\n")  # enough for a float32
_LOGGER = logging.getLogger("condsim.contexts")


class KeptScores:
    """The cosines of pairs, in a file of one version of a model."""

    def __init__(self, folder: Path, revision: str) -> None:
        """Reads nothing yet.

        Args:
            folder: Where the file is, or is made with the first score.
            revision: Stands for all that decides a score; the file is named after it.
        """
        self._path = folder / f"{revision}.txt"
        self._told = False

    def find(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Looks pairs up.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.

        Returns:
            The cosines, ``(n,)``; NaN where there is none.
        """
        try:
            lines = _LINE.findall(self._path.read_bytes())
        except OSError:
            lines = []
        known = {key.decode(): float(value) for key, value in lines}
        keys = map(_key, sentences1, sentences2)
        return np.array([known.get(key, np.nan) for key in keys], np.float32)

    def add(
        self, sentences1: Sequence[str], sentences2: Sequence[str], cosines: Sequence[float]
    ) -> None:
        """Keeps some; that they cannot be written is warned of once and no error.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            cosines: Their cosines, length n.
        """
        pairs = zip(sentences1, sentences2, cosines, strict=True)
        lines = ["\n"]  # what was cut off before must not run into the first line
        lines += [f"{_key(one, two)} {np.float32(cosine):+.8e}\n" for one, two, cosine in pairs]
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab", buffering=0) as stream:
                stream.write("".join(lines).encode())
        except OSError as error:
            if not self._told:
                _LOGGER.warning("%s: scores cannot be kept there (%s)", self._path.parent, error)
            self._told = True


def _key(sentence1: str, sentence2: str) -> str:
    content = json.dumps([sentence1, sentence2]).encode()
    return hashlib.sha256(content).hexdigest()[:32]
