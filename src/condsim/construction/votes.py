"""Ratings by row: what the annotators said of each pair under each condition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from condsim.construction.rows import DOES_NOT_APPLY, HUMAN, Intended, Rating
from condsim.errors import InputError
from condsim.types import IntArray

__all__ = ["LABELS", "VERDICTS", "RatedRow", "collect_votes", "plurality", "vote_counts"]

LABELS = (1, 2, 3, 4, 5)
"""The Likert scale."""

VERDICTS = (DOES_NOT_APPLY, *LABELS)
"""All that a rating can say."""


@dataclass(frozen=True, slots=True)
class RatedRow:
    """A pair under a condition, with all ratings of it.

    Attributes:
        row_id: See `condsim.construction.rows.row_id_of`.
        pair_id: The pair.
        sentence1: Its first sentence.
        sentence2: Its second sentence.
        condition: The condition.
        intended: What the condition was written for; None if it was written for both.
        people: Ratings by people, by annotator in the order of the alphabet.
        models: Ratings by models, likewise.
    """

    row_id: str
    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended | None
    people: tuple[Rating, ...]
    models: tuple[Rating, ...]


def collect_votes(ratings: Iterable[Rating]) -> tuple[RatedRow, ...]:
    """Brings the ratings of each row together.

    Args:
        ratings: The ratings, in any order.

    Returns:
        The rows by id; the same whatever the order of the ratings.

    Raises:
        InputError: If there are none, two ratings of a row have one annotator, or the ratings of a
            row differ in their texts.
    """
    of_row: dict[str, dict[str, Rating]] = defaultdict(dict)
    for rating in ratings:
        others = of_row[rating.row_id]
        if rating.annotator in others:
            raise InputError(
                f"Ratings: an annotator rates a row once. Got two of the row {rating.row_id} by "
                f"{rating.annotator!r} (labels {others[rating.annotator].label} and "
                f"{rating.label}): two people under one name, or a file joined from two pulls. "
                "Rename one of the two, or remove the outdated rating."
            )
        others[rating.annotator] = rating
    if not of_row:
        raise InputError("Ratings: one row or more is needed. Got none.")
    return tuple(
        _rated(row_id, [votes[name] for name in sorted(votes)])
        for row_id, votes in sorted(of_row.items())
    )


def _rated(row_id: str, votes: list[Rating]) -> RatedRow:
    first = votes[0]
    for vote in votes:
        for column in ("pair_id", "sentence1", "sentence2", "condition"):
            if getattr(vote, column) != getattr(first, column):
                raise InputError(
                    f"Ratings: all ratings of a row are of the same texts. Those of the row "
                    f"{row_id} by {first.annotator!r} and {vote.annotator!r} differ in {column!r}; "
                    "pull them again, or give the rows their own ids."
                )
    intended = {vote.intended for vote in votes}
    return RatedRow(
        row_id=row_id,
        pair_id=first.pair_id,
        sentence1=first.sentence1,
        sentence2=first.sentence2,
        condition=first.condition,
        intended=first.intended if len(intended) == 1 else None,
        people=tuple(vote for vote in votes if vote.origin == HUMAN),
        models=tuple(vote for vote in votes if vote.origin != HUMAN),
    )


def vote_counts(votes: Sequence[Sequence[Rating]]) -> IntArray:
    """Counts how often each row was given each verdict.

    Args:
        votes: The ratings of each row, length n.

    Returns:
        The counts, ``(n, 6)``, columns as in :data:`VERDICTS`.
    """
    counts = np.zeros((len(votes), len(VERDICTS)), np.int64)
    column = {verdict: number for number, verdict in enumerate(VERDICTS)}
    for row, ratings in enumerate(votes):
        for rating in ratings:
            counts[row, column[rating.label]] += 1
    return counts


def plurality(labels: Sequence[int]) -> int | None:
    """Gives the verdict that more voted for than for any other.

    Args:
        labels: Verdicts.

    Returns:
        The verdict; None if several tie, or there are no votes.

    Example:
        >>> plurality([2, 2, 5]), plurality([2, 5])
        (2, None)
    """
    counts = {label: labels.count(label) for label in set(labels)}
    most = [label for label, count in counts.items() if count == max(counts.values())]
    return most[0] if len(most) == 1 else None
