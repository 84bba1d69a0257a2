"""Rows of an annotation project: conditions, ratings and rows of the finished data set."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from condsim.errors import InputError
from condsim.rows.records import DOES_NOT_APPLY, TableRow

Intended: TypeAlias = Literal["high", "low"]
"""The condition of a pair: C-High or C-Low (C-STS §2.2.2, stage 2)."""

HUMAN = "human"
"""Origin of a text or rating by a person; otherwise the origin is the name of a model."""


@dataclass(frozen=True, slots=True)
class Condition(TableRow):
    """A condition that was written for a pair.

    Attributes:
        intended: Whether the sentences should be alike ("high") or different ("low") under it.
        seconds: Writing time; None if unknown.
        origin: `HUMAN`, or the model whose proposal the annotator did not change.
        prefilled_by: The model whose proposal the annotator saw; empty for none.
        hints: Rules that it may break, separated by " | ".
    """

    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended
    annotator: str
    seconds: float | None = None
    origin: str = HUMAN
    prefilled_by: str = ""
    hints: str = ""

    def __post_init__(self) -> None:
        _check_intended(self.intended)


@dataclass(frozen=True, slots=True)
class Rating(TableRow):
    """The rating of one pair under one condition by one annotator.

    Attributes:
        row_id: See `row_id_of`.
        intended: What the condition was written for.
        label: Similarity from 1 to 5, or `DOES_NOT_APPLY`.
        seconds: Rating time; None if unknown.
        origin: `HUMAN`, or the model that rated.
        updated_at: Time of the last change, ISO 8601 in UTC; empty if unknown.
        prefilled_by: The model whose rating the annotator saw; empty for none.
        condition_origin: `HUMAN`, or the model that proposed the condition, changed or not.
    """

    row_id: str
    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended
    annotator: str
    label: int
    seconds: float | None = None
    origin: str = HUMAN
    updated_at: str = ""
    prefilled_by: str = ""
    condition_origin: str = HUMAN

    def __post_init__(self) -> None:
        _check_intended(self.intended)
        check_label(self.label, subject="'label' of a rating")


@dataclass(frozen=True, slots=True)
class DatasetRow(TableRow):
    """A row of the finished data set; the first four columns are those of the C-STS release.

    ``origin`` is `HUMAN`, or the models that took part in the row; ``label`` is from 1 to 5.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    pair_id: str
    origin: str
    split: str = ""


@dataclass(frozen=True, slots=True)
class Dropped(TableRow):
    """A row that is not in the data set, with one of a few reasons and, as detail, its ratings."""

    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    reason: str
    detail: str = ""

    @classmethod
    def of(cls, row: Rating | Condition | DatasetRow, reason: str, detail: str = "") -> Dropped:
        """Drop a row."""
        return cls(row.pair_id, row.sentence1, row.sentence2, row.condition, reason, detail)


def row_id_of(pair_id: str, condition: str) -> str:
    """Return the id of a pair under a condition: the pair's id and 8 hexadecimal digits.

    Example:
        >>> row_id_of("0123456789abcdef", "The color")[:17]
        '0123456789abcdef-'
    """
    return f"{pair_id}-{hashlib.sha256(condition.encode()).hexdigest()[:8]}"


def _check_intended(intended: str) -> None:
    if intended not in get_args(Intended):
        raise InputError(f"'intended' must be 'high' or 'low'; got {intended!r}.")


def check_label(label: int, *, subject: str) -> None:
    """Reject a number that is not on the scale."""
    if label != DOES_NOT_APPLY and not 1 <= label <= 5:
        raise InputError(
            f"{subject} must be a whole number from 1 to 5, or {DOES_NOT_APPLY} if the condition "
            f"does not apply; got {label!r}."
        )
