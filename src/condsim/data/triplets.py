"""Triplets: an anchor, a text nearer to it and one further from it.

Columns are ``anchor``, ``positive`` and ``negative``, or those of the released Wikipedia section
triplets, ``Sentence1`` to ``Sentence3`` (Ein Dor et al., 2018): a sentence is nearer in theme to
those of the same section than to those of others.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.data.files import column_names, iter_rows
from condsim.errors import InputError
from condsim.io import sha256_of, stem_of
from condsim.types import IntArray, Task

TRIPLET_COLUMNS = (("anchor", "positive", "negative"), ("Sentence1", "Sentence2", "Sentence3"))
"""The names of the columns: ours, and those of the released section triplets."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Triplets:
    """Validated triplets: what the triplet objective learns from and is measured on.

    Attributes:
        revision: First 12 hex digits of the SHA-256 of the file.
        anchors: The anchor of each row, length n.
        positives: The text that is nearer to the anchor, length n.
        negatives: The text that is further from the anchor, length n.
        dropped: Number of rows of the file with two equal texts, left out.
    """

    name: str
    revision: str
    anchors: tuple[str, ...]
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.anchors)

    def take(self, rows: IntArray) -> Triplets:
        """Return the triplets with the indices ``(m,)``, in that order."""
        return replace(
            self,
            anchors=tuple(self.anchors[row] for row in rows),
            positives=tuple(self.positives[row] for row in rows),
            negatives=tuple(self.negatives[row] for row in rows),
        )

    def pairs(self) -> Task:
        """Return the ``2n`` pairs of the triplets, as a task without conditions.

        Returns:
            Each anchor with its positive and the label 1 in the first half, with its negative and
            the label 0 in the second.
        """
        return Task(
            name=self.name,
            revision=self.revision,
            sentences1=self.anchors * 2,
            sentences2=self.positives + self.negatives,
            conditions=None,
            labels=np.repeat(np.array([1, 0], np.float32), len(self)),
            label_range=(0.0, 1.0),
        )


def is_triplets(columns: Collection[str]) -> bool:
    """Detect triplets from the names of a file's columns."""
    return any(set(names) <= set(columns) for names in TRIPLET_COLUMNS)


def load_triplets(path: Path | str, *, name: str | None = None) -> Triplets:
    """Load a file of triplets.

    Rows in which two of the three texts are equal carry no information and are dropped; their
    number is logged at level info.

    Args:
        path: File with the columns ``anchor``, ``positive`` and ``negative``, or ``Sentence1`` to
            ``Sentence3``; formats as `condsim.data.files.iter_rows` reads them.
        name: Name of the data; the file's stem by default.

    Returns:
        The triplets in file order.

    Raises:
        InputError: If the file cannot be read, a text is empty or not text, or no row is usable.
        MissingExtraError: If the file is Parquet and pyarrow is missing.
    """
    path = Path(path)
    own_columns, released_columns = TRIPLET_COLUMNS
    is_released = set(released_columns) <= set(column_names(path))
    columns = released_columns if is_released else own_columns
    usable: list[tuple[str, ...]] = []
    dropped = 0
    for row in iter_rows(path, columns=columns):
        texts = tuple(row.text(column) for column in columns)
        if len(set(texts)) == len(columns):
            usable.append(texts)
        else:
            dropped += 1
    if not usable:
        raise InputError(
            f"{path}: a triplet needs three different texts; in each of the {dropped} rows two are "
            "equal."
        )
    anchors, positives, negatives = zip(*usable, strict=True)
    triplets = Triplets(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        anchors=anchors,
        positives=positives,
        negatives=negatives,
        dropped=dropped,
    )
    _LOGGER.info(
        "%s: %d triplets, %d dropped for equal texts", triplets.name, len(triplets), dropped
    )
    return triplets
