"""Natural language inference: a premise entails a hypothesis, contradicts it, or neither."""

# Columns are ``premise``, ``hypothesis`` and ``label``, or in the JSONL of SNLI and MultiNLI
# ``sentence1``, ``sentence2``, ``gold_label`` (Bowman et al., 2015; Williams et al., 2018).

from __future__ import annotations

import logging
from array import array
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.data.reading import column_names, iter_rows, stem_of
from condsim.data.row import Row, shown
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.types import IntArray

NLI_CLASSES = ("entailment", "neutral", "contradiction")
"""The classes in the order of their numbers, which is that of the data sets on the Hub."""

NLI_COLUMNS = (("premise", "hypothesis", "label"), ("sentence1", "sentence2", "gold_label"))
"""The names of the columns: ours, and those of SNLI and MultiNLI."""

_NUMBERS = {name: number for number, name in enumerate(NLI_CLASSES)}
_NUMBERS |= {str(number): number for number in range(len(NLI_CLASSES))}
_RULE = f"one of {', '.join(NLI_CLASSES)} (or 0, 1, 2 in that order)"
_NO_GOLD = ("-", "-1", "", "nan")  # SNLI where the annotators did not agree; the same on the Hub

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class NliTask:
    """Validated pairs with a class: what the softmax objective learns from.

    Attributes:
        revision: First 12 hex digits of the SHA-256 of the file.
        premises: The premise of each row, length n.
        hypotheses: The hypothesis of each row, length n.
        classes: Index of each row's class in ``NLI_CLASSES``, ``(n,)``.
        dropped: Rows of the file without a gold label, left out.
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
        """Gives a task of some rows, by their indices ``(m,)``, in that order."""
        return replace(
            self,
            premises=tuple(self.premises[row] for row in rows),
            hypotheses=tuple(self.hypotheses[row] for row in rows),
            classes=self.classes[rows],
        )


def load_nli(path: Path | str, *, name: str | None = None) -> NliTask:
    """Loads a file of NLI.

    Rows without a gold label ("-", -1 or nothing) are dropped; their number is logged at level info
    (logger ``condsim``).

    Args:
        path: File with ``premise``, ``hypothesis`` and ``label``, or ``sentence1``, ``sentence2``
            and ``gold_label``; formats as `iter_rows` reads them. A label is a class by name or by
            its index in ``NLI_CLASSES``.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows that have a class, in file order.

    Raises:
        InputError: See `iter_rows`; also if no row has a class, a sentence is empty or no text, or
            a label is no class.
        MissingExtraError: See `iter_rows`.
    """
    path = Path(path)
    names, released = NLI_COLUMNS
    columns = released if set(released) <= set(column_names(path)) else names
    premises: list[str] = []
    hypotheses: list[str] = []
    classes = array("b")
    dropped = 0
    known: dict[str, str] = {}  # a premise has three hypotheses or more
    for row in iter_rows(path, columns=columns):
        number = _class_of(row, columns[2])
        if number is None:
            dropped += 1
            continue
        premise = row.text(columns[0])
        premises.append(known.setdefault(premise, premise))
        hypotheses.append(row.text(columns[1]))
        classes.append(number)
    if not premises:
        raise InputError(f"{path}: none of the {dropped} rows has a gold label ({_RULE}).")
    task = NliTask(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        premises=tuple(premises),
        hypotheses=tuple(hypotheses),
        classes=np.array(classes, np.int64),
        dropped=dropped,
    )
    counts = np.bincount(task.classes, minlength=len(NLI_CLASSES)).tolist()
    each = ", ".join(f"{count} {name}" for count, name in zip(counts, NLI_CLASSES, strict=True))
    _LOGGER.info(
        "%s: %d rows (%s), %d dropped without a gold label", task.name, len(task), each, dropped
    )
    return task


def _class_of(row: Row, column: str) -> int | None:
    """Index of the row's class; None where it has no gold label."""
    value = row.cells[column]
    text = "" if value is None else str(value).casefold().removesuffix(".0")
    if text in _NO_GOLD:
        return None
    if text not in _NUMBERS:
        rule = f"{_RULE} or '-' for none"
        raise InputError(f"{row.place(column)}: must be {rule}, got {shown(value)}.")
    return _NUMBERS[text]
