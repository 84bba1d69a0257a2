"""Rows that pass from step to step of an annotation: `Condition`, `Rating`, `DatasetRow`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from condsim.errors import InputError
from condsim.rows.records import DOES_NOT_APPLY, TableRow

Intended: TypeAlias = Literal["high", "low"]
"""Which of the two conditions of a pair: C-High or C-Low (C-STS §2.2.2, stage 2)."""

HUMAN = "human"
"""Origin of what a person wrote or rated; otherwise the origin is the name of a model."""


@dataclass(frozen=True, slots=True)
class Condition(TableRow):
    """A condition that was written for a pair."""

    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended  # whether the pair is meant to be alike ("high") or not ("low") under it
    annotator: str  # who wrote it
    seconds: float | None = None  # time it took; None where it is not known
    origin: str = HUMAN  # `HUMAN`, or the name of the model that proposed it and whose words stayed
    # The model whose proposal the annotator was shown, changed or not; empty for none.
    prefilled_by: str = ""

    def __post_init__(self) -> None:
        _check_intended(self.intended)


@dataclass(frozen=True, slots=True)
class Rating(TableRow):
    """What one annotator says of one pair under one condition.

    The key is (`row_id`, `annotator`): a later rating with the same key replaces the earlier one.
    """

    row_id: str  # see `row_id_of`
    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended  # what the condition was written for
    annotator: str  # who rated
    label: int  # similarity from 1 to 5, or `DOES_NOT_APPLY`
    seconds: float | None = None  # time it took; None where it is not known
    origin: str = HUMAN  # `HUMAN`, or the name of the model that rated
    updated_at: str = ""  # when the rating was last changed, ISO 8601 in UTC; empty where not known
    # The model whose rating the annotator was shown, changed or not; empty for none.
    prefilled_by: str = ""
    # `HUMAN`, or the name of the model that proposed the condition, changed or not.
    condition_origin: str = HUMAN

    def __post_init__(self) -> None:
        _check_intended(self.intended)
        check_label(self.label, what="'label' of a rating")


@dataclass(frozen=True, slots=True)
class DatasetRow(TableRow):
    """A row of the finished data set; the first four columns are those of the C-STS release."""

    sentence1: str
    sentence2: str
    condition: str
    label: float  # similarity from 1 to 5
    pair_id: str
    origin: str  # `HUMAN`, or the names of the models that had a hand in the row
    split: str  # such as ``"train"``


def row_id_of(pair_id: str, condition: str) -> str:
    """Names a pair under a condition.

    Args:
        pair_id: See `pair_id_of`.

    Returns:
        The id of the pair, a hyphen and 8 hexadecimal digits.

    Example:
        >>> row_id_of("0123456789abcdef", "The color")[:17]
        '0123456789abcdef-'
    """
    return f"{pair_id}-{hashlib.sha256(condition.encode()).hexdigest()[:8]}"


def _check_intended(intended: str) -> None:
    if intended not in get_args(Intended):
        raise InputError(f"'intended' must be 'high' or 'low'. Got {intended!r}.")


def check_label(label: int, *, what: str) -> None:
    """Refuses what is no answer of an annotator."""
    if label != DOES_NOT_APPLY and not 1 <= label <= 5:
        raise InputError(
            f"{what} must be a whole number from 1 to 5, or {DOES_NOT_APPLY} where the condition "
            f"does not apply. Got {label!r}."
        )
