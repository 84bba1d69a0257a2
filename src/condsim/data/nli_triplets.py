"""Training data without scores: pairs with a class of NLI, and triplets.

Natural language inference: a premise entails a hypothesis, contradicts it, or neither. Columns are
``premise``, ``hypothesis`` and ``label``, or in the JSON lines of SNLI and MultiNLI ``sentence1``,
``sentence2``, ``gold_label`` (Bowman et al., 2015; Williams et al., 2018).

Triplets: an anchor, a text nearer to it and one further from it. Columns are ``anchor``,
``positive`` and ``negative``, or ``Sentence1`` to ``Sentence3`` as in the released triplets of
Wikipedia sections (Ein Dor et al., 2018): a sentence is nearer in theme to sentences of its section
than to others.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.data.files import column_names, iter_rows
from condsim.data.row import Row, short_repr
from condsim.errors import InputError
from condsim.paths import sha256_of, stem_of
from condsim.types import IntArray, Task

NLI_CLASSES = ("entailment", "neutral", "contradiction")
"""The classes in the order of their numbers, as in the data sets on the Hub."""

NLI_COLUMNS = (("premise", "hypothesis", "label"), ("sentence1", "sentence2", "gold_label"))
"""The names of the columns: ours, and the names in SNLI and MultiNLI."""

TRIPLET_COLUMNS = (("anchor", "positive", "negative"), ("Sentence1", "Sentence2", "Sentence3"))
"""The names of the columns: ours, and the names in the released section triplets."""

_CLASS_NUMBERS = {name: number for number, name in enumerate(NLI_CLASSES)}
_CLASS_NUMBERS |= {str(number): number for number in range(len(NLI_CLASSES))}
_CLASS_RULE = f"one of {', '.join(NLI_CLASSES)} (or 0, 1, 2 in that order)"
# SNLI writes "-" where the annotators did not agree; the data sets on the Hub write -1.
_MISSING_LABELS = ("-", "-1", "", "nan")
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class NliTask:
    """Validated pairs with a class, for the softmax objective.

    Attributes:
        revision: First 12 hex digits of the SHA-256 of the file.
        premises: The premise of each row, length n.
        hypotheses: The hypothesis of each row, length n.
        classes: Index of each row's class in ``NLI_CLASSES``, ``(n,)``.
        dropped: Number of rows of the file without a gold label, left out.
    """

    name: str
    revision: str
    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    classes: IntArray
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.premises)

    def take(self, rows: IntArray) -> NliTask:
        """Return a task of the rows with the indices ``(m,)``, in that order."""
        premises = tuple(self.premises[row] for row in rows)
        hypotheses = tuple(self.hypotheses[row] for row in rows)
        return replace(self, premises=premises, hypotheses=hypotheses, classes=self.classes[rows])


def load_nli(path: Path | str, *, name: str | None = None) -> NliTask:
    """Load a file of NLI.

    Rows without a gold label ("-", -1 or empty) are dropped; their number is logged at level info.

    Args:
        path: File with ``premise``, ``hypothesis`` and ``label``, or ``sentence1``, ``sentence2``
            and ``gold_label``; formats as `condsim.data.files.iter_rows` reads them. A label is a
            class by name or by its index in ``NLI_CLASSES``.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows that have a class, in file order.

    Raises:
        InputError: If the file cannot be read, no row has a class, a sentence is empty or not
            text, or a label is not a class.
        MissingExtraError: If the file is Parquet and pyarrow is missing.
    """
    path = Path(path)
    columns = _columns_of(path, NLI_COLUMNS)
    premises: list[str] = []
    hypotheses: list[str] = []
    classes = array("b")
    dropped = 0
    # A premise has three hypotheses or more; its text is stored once.
    texts: dict[str, str] = {}
    for row in iter_rows(path, columns=columns):
        number = _class_number(row, columns[2])
        if number is None:
            dropped += 1
            continue
        premise = row.text(columns[0])
        premises.append(texts.setdefault(premise, premise))
        hypotheses.append(row.text(columns[1]))
        classes.append(number)
    if not premises:
        raise InputError(f"{path}: none of the {dropped} rows has a gold label ({_CLASS_RULE}).")
    task = NliTask(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        premises=tuple(premises),
        hypotheses=tuple(hypotheses),
        classes=np.array(classes, np.int64),
        dropped=dropped,
    )
    counts = np.bincount(task.classes, minlength=len(NLI_CLASSES)).tolist()
    summary = ", ".join(f"{count} {name}" for count, name in zip(counts, NLI_CLASSES, strict=True))
    _LOGGER.info(
        "%s: %d rows (%s), %d dropped without a gold label", task.name, len(task), summary, dropped
    )
    return task


def _columns_of(
    path: Path, forms: tuple[tuple[str, str, str], tuple[str, str, str]]
) -> tuple[str, str, str]:
    """Return the released names of the columns if the file has these, and ours otherwise."""
    ours, released = forms
    return released if set(released) <= set(column_names(path)) else ours


def _class_number(row: Row, column: str) -> int | None:
    """Return the index of the row's class; None if it has no gold label."""
    value = row.cells[column]
    text = "" if value is None else str(value).casefold().removesuffix(".0")
    if text in _MISSING_LABELS:
        return None
    if text not in _CLASS_NUMBERS:
        raise InputError(
            f"{row.location(column)}: must be {_CLASS_RULE} or '-' for none, got "
            f"{short_repr(value)}."
        )
    return _CLASS_NUMBERS[text]


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
    columns = _columns_of(path, TRIPLET_COLUMNS)
    rows = [tuple(map(row.text, columns)) for row in iter_rows(path, columns=columns)]
    usable = [texts for texts in rows if len(set(texts)) == len(texts)]
    dropped = len(rows) - len(usable)
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
