"""Triplets: an anchor, a text nearer to it and one further from it.

Reads files with the columns ``anchor``, ``positive`` and ``negative``, and the released Wikipedia
section triplets unchanged (``Sentence1``, ``Sentence2``, ``Sentence3``; Ein Dor et al., 2018).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import replacing, sha256_of
from condsim.tasks.graded import compare_split
from condsim.tasks.rows import column_names, iter_rows, stem_of
from condsim.types import FloatArray, IntArray, Task

TRIPLET_COLUMNS = (("anchor", "positive", "negative"), ("Sentence1", "Sentence2", "Sentence3"))
"""The names of the columns: ours, and those of the released section triplets."""

SECTION_COUNTS = {"test": 222957}
"""Rows of the released Wikipedia section triplets, as far as published (Reimers and Gurevych, 2019,
§4.4)."""

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class Triplets:
    """Validated triplets: what the triplet objective learns from, and is measured on.

    Attributes:
        name: Short name.
        revision: First 12 hex digits of the SHA-256 of the file.
        anchors: The anchor of each row, length n.
        positives: The text that is nearer to the anchor, length n.
        negatives: The text that is further from the anchor, length n.
        dropped: Rows of the file with two equal texts, left out.
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
        """Gives some of the triplets, by their indices ``(m,)``, in that order."""
        return replace(
            self,
            anchors=tuple(self.anchors[row] for row in rows),
            positives=tuple(self.positives[row] for row in rows),
            negatives=tuple(self.negatives[row] for row in rows),
        )

    def pairs(self) -> Task:
        """Gives the ``2n`` pairs of the triplets, as a task without conditions.

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

    def accuracy(self, scores: FloatArray) -> float:
        """Share of the triplets whose anchor is nearer to its positive (SSBC §4.5).

        Args:
            scores: Raw similarity of each row of :meth:`pairs`, ``(2n,)``; calibrated, very low or
                very high ones become equal.

        Returns:
            A share in [0, 1]; equal scores count as wrong.
        """
        return float((scores[: len(self)] > scores[len(self) :]).mean())


def is_triplets(columns: Collection[str]) -> bool:
    """Whether the names of a file's columns are those of triplets."""
    return any(set(names) <= set(columns) for names in TRIPLET_COLUMNS)


def load_triplets(path: Path | str, *, name: str | None = None) -> Triplets:
    """Loads a file of triplets.

    Rows in which two of the three texts are equal say nothing and are dropped; their number is
    logged at level info (logger ``condsim``). For the released ``test.csv``, another number of rows
    than published is logged as a warning.

    Args:
        path: File with the columns ``anchor``, ``positive`` and ``negative``, or ``Sentence1`` to
            ``Sentence3``; formats as `iter_rows` reads them.
        name: Name of the data; the file's stem by default.

    Returns:
        The triplets in file order.

    Raises:
        InputError: See `iter_rows`; also if no row is usable, or a text is empty or no text.
        MissingExtraError: See `iter_rows`.
    """
    path = Path(path)
    names, released = TRIPLET_COLUMNS
    columns = released if set(released) <= set(column_names(path)) else names
    kept: list[tuple[str, ...]] = []
    dropped = 0
    for row in iter_rows(path, columns=columns):
        texts = tuple(row.text(column) for column in columns)
        if len(set(texts)) == len(columns):
            kept.append(texts)
        else:
            dropped += 1
    if not kept:
        raise InputError(
            f"{path}: in each of the {dropped} rows two of the three texts are equal. A triplet "
            "needs three texts."
        )
    anchors, positives, negatives = zip(*kept, strict=True)
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
    if columns == released:
        compare_split(path, found=len(kept) + dropped, published=SECTION_COUNTS)
    return triplets


def write_triplets(triplets: Triplets, path: Path) -> None:
    """Writes triplets to a ``.tsv`` file, in one step; runs of white space become one space.

    Raises:
        InputError: If the name ends in anything else, or the folder does not exist.
    """
    if path.suffix != ".tsv":
        raise InputError(f"{path}: triplets are written as .tsv; give a name that ends so.")
    rows = zip(triplets.anchors, triplets.positives, triplets.negatives, strict=True)
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write("\t".join(TRIPLET_COLUMNS[0]) + "\n")
        for row in rows:
            stream.write("\t".join(" ".join(text.split()) for text in row) + "\n")
