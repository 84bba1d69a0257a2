"""Groups of training rows: a few inputs, and the label of some pairs of them."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from condsim.data.held_out import HeldOutTexts

Input = tuple[str | None, str]
"""A condition, None for none, and a text."""


@dataclass
class Group:
    """Group of rows that is drawn whole for a batch.

    Attributes:
        inputs: Conditions and texts.
        rows: First and second input, the label in [0, 1], and the weight of each row.
        plain: Whether the target of each input is the plain vector of its text.
        share: Share of the plain cosine in the target of each row.
    """

    inputs: list[Input]
    rows: list[tuple[int, int, float, float]] = field(default_factory=list)
    plain: bool = False
    share: float = 0.0

    def spoken_rows(self) -> Iterator[tuple[Input, Input, float]]:
        """Rows of which both texts speak of the condition: these have the weight 1."""
        for first, second, label, weight in self.rows:
            if weight == 1:
                yield self.inputs[first], self.inputs[second], label

    def to_json(self) -> str:
        """One line of a file."""
        return json.dumps(
            {"inputs": self.inputs, "rows": self.rows, "plain": self.plain, "share": self.share},
            ensure_ascii=False,
        )


def write_groups(groups: Iterable[Group], path: Path, *, exclude: Sequence[HeldOutTexts]) -> int:
    """Write the groups without texts of any of ``exclude`` and return their number."""
    number = 0
    partial = path.with_suffix(".partial")
    with gzip.open(partial, "wt", encoding="utf-8") as stream:
        for group in groups:
            if any(text in texts for _, text in group.inputs for texts in exclude):
                continue
            stream.write(group.to_json() + "\n")
            number += 1
    partial.replace(path)
    return number


def read_groups(path: Path) -> Iterator[Group]:
    """Read what :func:`write_groups` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            cells = json.loads(line)
            yield Group(
                inputs=[(condition, text) for condition, text in cells["inputs"]],
                rows=[(first, second, label, w) for first, second, label, w in cells["rows"]],
                plain=cells["plain"],
                share=cells["share"],
            )


def percentile(key: str) -> int:
    """A number from 0 to 99 that is always the same for a key: which part a thing belongs to."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 100
