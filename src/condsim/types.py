"""The three nouns of condsim: a Task is scored by a Scorer into a Report. Tables in notebooks."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
Float64Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

KeepRule = Literal["first", "longest"]
"""Which text of a group of duplicates is kept, where no number for each decides."""

ROWS_SHOWN = 10
"""Maximum number of rows that a notebook shows of a result."""

_MAX_TEXT_CHARACTERS = 120


def is_marks(text: str) -> bool:
    """Check if a text is only punctuation and spaces, which names no condition."""
    return all(unicodedata.category(character)[0] in "CPZ" for character in text)


@dataclass(frozen=True)
class Task:
    """Validated rows, on which scorers are measured.

    Attributes:
        name: Short name, shown in tables (the file's stem by default).
        revision: First 12 hex digits of the SHA-256 of the file the rows came from.
        sentences1: The first sentence of each row, length n.
        sentences2: The second sentence of each row, length n.
        conditions: The condition of each row, length n, or None for unconditional similarity.
        labels: Gold similarity on the task's own scale, ``(n,)``; NaN where unlabeled or invalid.
        label_range: Lowest and highest label of the scale, (1, 5) for C-STS.
    """

    name: str
    revision: str
    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    conditions: tuple[str, ...] | None
    labels: FloatArray
    label_range: tuple[float, float] = (1.0, 5.0)

    def __len__(self) -> int:
        return len(self.sentences1)

    def __repr__(self) -> str:
        """Name the task and count its rows."""
        without = "" if self.conditions is not None else ", no conditions"
        return f"Task({self.name!r}, {len(self):,} rows, {self.valid.sum():,} labeled{without})"

    def _repr_html_(self) -> str:
        rows = zip(
            self.sentences1,
            self.sentences2,
            self.conditions or ("",) * len(self),
            (None if math.isnan(label) else float(label) for label in self.labels),
            strict=True,
        )
        head = ("sentence1", "sentence2", "condition", "label")
        more = len(self) - ROWS_SHOWN
        return html_table(repr(self), head, islice(rows, ROWS_SHOWN), more=more)

    @property
    def valid(self) -> BoolArray:
        """Mask of the rows that have a gold label, ``(n,)``."""
        return ~np.isnan(self.labels)

    @property
    def gold(self) -> FloatArray:
        """Labels mapped linearly to [0, 1], ``(n,)``; NaN where unlabeled."""
        low, high = self.label_range
        return ((self.labels - low) / (high - low)).astype(np.float32)

    def labeled(self) -> Self:
        """Task without the unlabeled rows."""
        return self.take(np.flatnonzero(self.valid))

    def take(self, rows: IntArray) -> Self:
        """Select rows of the task.

        Args:
            rows: Indices of the rows, ``(m,)``.

        Returns:
            A task of those rows, in that order.
        """
        return replace(
            self,
            sentences1=tuple(self.sentences1[row] for row in rows),
            sentences2=tuple(self.sentences2[row] for row in rows),
            conditions=self.conditions and tuple(self.conditions[row] for row in rows),
            labels=self.labels[rows],
        )


@runtime_checkable
class Scorer(Protocol):
    """Anything that turns sentence pairs into similarities."""

    @property
    def name(self) -> str:
        """Short name, shown in tables."""

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        /,
    ) -> FloatArray:
        """Score each pair.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Conditions, length n, or None for unconditional similarity.

        Returns:
            Similarity of each pair, ``(n,)`` float32; higher is more similar.
        """


def shortened(text: str, characters: int = _MAX_TEXT_CHARACTERS) -> str:
    """Put a text on one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def html_table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, more: int = 0
) -> str:
    """Lay out a title and a table, and say below how many more rows were left out."""
    lines = [f"<p><strong>{escape(title)}</strong></p>"]
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines.append(f"<table>\n<thead><tr>{cells}</tr></thead>\n<tbody>")
    for row in rows:
        cells = "".join(f'<td dir="auto">{_html_cell(value)}</td>' for value in row)
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody>\n</table>")
    if more > 0:
        lines.append(f"<p>{more:,} more</p>")
    return "\n".join(lines) + "\n"


def _html_cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.2f}"
        case int():
            return f"{value:,}"
    return escape(shortened(str(value)))
