"""Rows that pass from step to step while a data set is built.

```
Candidate ──► Condition ──► Rating ──► DatasetRow
two sentences  + condition   + label    what `condsim train` reads
```

One frozen dataclass a row; its fields are the columns of the file, in order. How they are read and
written is in `condsim.construction.row_files`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from condsim.errors import InputError

Intended: TypeAlias = Literal["high", "low"]
"""Which of the two conditions of a pair: C-High or C-Low (C-STS §2.2.2, stage 2)."""

DOES_NOT_APPLY = -1
"""Label of a rating that says the condition does not apply to the pair."""

HUMAN = "human"
"""Origin of what a person wrote or rated; otherwise the origin is the name of a model."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """Any row that has a file of its own."""


@dataclass(frozen=True, slots=True)
class Candidate(TableRow):
    """A sentence pair that may be annotated."""

    pair_id: str  # see `pair_id_of`
    source: str  # name of the collection that both sentences are from
    item1: str  # item of the first sentence
    item2: str  # item of the second sentence, another one
    sentence1: str
    sentence2: str
    # Cosine of the two items' embeddings, -1 to 1; None where there are none.
    similarity: float | None = None
    # Intersection over union of the bags of words, 0 to 1; None until filtered.
    iou: float | None = None
    # Cosine of the two sentences' embeddings, -1 to 1; None until filtered.
    text_cosine: float | None = None
    # Words of the shorter by words of the longer, 0 to 1; None until filtered.
    length_ratio: float | None = None
    min_length: int | None = None  # characters of the shorter; None until filtered


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
        """Checks ``intended``."""
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
        """Checks ``intended`` and ``label``."""
        _check_intended(self.intended)
        if self.label != DOES_NOT_APPLY and not 1 <= self.label <= 5:
            raise InputError(
                f"'label' of a rating must be a whole number from 1 to 5, or {DOES_NOT_APPLY} "
                f"where the condition does not apply. Got {self.label!r}."
            )


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


def columns_of(kind: type[TableRow]) -> tuple[str, ...]:
    """Names the columns of a file of such rows."""
    return tuple(field.name for field in fields(kind))


def pair_id_of(source: str, sentence1: str, sentence2: str) -> str:
    """Names a sentence pair by what it is, the same in every run and in either order.

    Returns:
        16 hexadecimal digits.

    Example:
        >>> pair_id_of("demo", "A cat.", "A dog.") == pair_id_of("demo", "A dog.", "A cat.")
        True
    """
    first, second = sorted((sentence1, sentence2))
    return hashlib.sha256(f"{source}\0{first}\0{second}".encode()).hexdigest()[:16]


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
