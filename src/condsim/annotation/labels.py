"""One label for each row from its ratings; rows without a label are listed with the reason.

C-STS takes one rating of a row, in which the annotator may say that the condition does not apply
(§2.2.2, stage 3). With several, condsim takes their median or the label with the most votes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median, multimode
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from condsim.annotation.records import HUMAN, Condition, DatasetRow, Dropped, Rating, row_id_of
from condsim.config import Settings
from condsim.errors import InputError
from condsim.rows.records import DOES_NOT_APPLY
from condsim.types import IntArray

LABELS = (1, 2, 3, 4, 5)
VERDICTS = (DOES_NOT_APPLY, *LABELS)


class RatedRow(NamedTuple):
    """Ratings of a pair under a condition, by the name of the annotator; not all need be there."""

    people: tuple[Rating, ...]
    models: tuple[Rating, ...]

    @property
    def first(self) -> Rating:
        """A rating, for the texts and ids."""
        return (self.people or self.models)[0]


def collect_votes(ratings: Iterable[Rating]) -> tuple[RatedRow, ...]:
    """Group ratings by row; the result does not depend on their order."""
    rows: dict[str, dict[str, Rating]] = defaultdict(dict)
    for rating in ratings:
        votes = rows[rating.row_id]
        if rating.annotator in votes:
            raise InputError(
                f"Ratings: two of the row {rating.row_id} are by {rating.annotator!r} (labels "
                f"{votes[rating.annotator].label} and {rating.label}). Rename one of the "
                "annotators, or remove the outdated rating."
            )
        votes[rating.annotator] = rating
        first = next(iter(votes.values()))
        for column in ("pair_id", "sentence1", "sentence2", "condition"):
            if getattr(rating, column) != getattr(first, column):
                raise InputError(
                    f"Ratings: those of the row {rating.row_id} by {first.annotator!r} and "
                    f"{rating.annotator!r} differ in {column!r}; ratings of a row must have the "
                    "same texts."
                )
    rated = []
    for _, votes in sorted(rows.items()):
        ordered = [votes[name] for name in sorted(votes)]
        people = tuple(vote for vote in ordered if vote.origin == HUMAN)
        rated.append(RatedRow(people, tuple(vote for vote in ordered if vote.origin != HUMAN)))
    return tuple(rated)


def vote_counts(votes: Sequence[Sequence[Rating]]) -> IntArray:
    """Count how often each row was given each verdict of `VERDICTS`, ``(n, 6)``."""
    counts = np.zeros((len(votes), len(VERDICTS)), np.int64)
    for row, ratings in enumerate(votes):
        for rating in ratings:
            counts[row, VERDICTS.index(rating.label)] += 1
    return counts


def plurality(labels: Sequence[int]) -> int | None:
    """Return the verdict with more votes than any other; None for ``[2, 5]``."""
    modes = multimode(labels)
    return modes[0] if len(modes) == 1 else None


class LabelRules(Settings):
    """Rules by which ratings become labels.

    Attributes:
        how: A median may be between two labels; without a ``majority`` the row is dropped.
        min_ratings: Rows with fewer ratings are dropped.
        invalid_share: A row is dropped if at least this share of its ratings says that the
            condition does not apply.
        order: Pairs whose C-High condition is not rated above their C-Low one: ``report`` counts
            them, ``drop-reversed`` drops pairs rated the other way round, ``drop-unordered`` ties
            as well.
        keep_lone: Whether to keep a row whose pair has lost its other row.
        count_models: Whether ratings by models count as votes.
    """

    subject = "labels"

    how: Literal["median", "majority"] = "median"
    min_ratings: Annotated[int, Field(ge=1)] = 1
    invalid_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    order: Literal["report", "drop-reversed", "drop-unordered"] = "report"
    keep_lone: bool = False
    count_models: bool = False


class OrderCheck(NamedTuple):
    """Numbers of pairs with both rows labeled, by the order of the labels."""

    as_intended: int
    ties: int
    reversed: int

    @property
    def pairs(self) -> int:
        """Number of all pairs."""
        return sum(self)


class Decision(NamedTuple):
    """Labeled rows by pair, dropped rows, and the order before any pair was dropped for it."""

    labelled: list[DatasetRow]
    dropped: list[Dropped]
    order: OrderCheck


class _Labelled(NamedTuple):
    rating: Rating
    label: float
    origins: set[str]


def decide_labels(
    rows: Sequence[RatedRow], rules: LabelRules, *, conditions: Iterable[Condition] = ()
) -> Decision:
    """Give each row its label, or the reason why it has none.

    Args:
        conditions: All conditions: models that proposed one are origins of its row, and those that
            were never rated are dropped.
    """
    by_pair: dict[str, list[_Labelled]] = defaultdict(list)
    dropped: list[Dropped] = []
    for row in rows:
        decided = _decide_row(row, rules)
        if isinstance(decided, Dropped):
            dropped.append(decided)
        else:
            by_pair[decided.rating.pair_id].append(decided)
    remaining: list[_Labelled] = []
    signs: Counter[int] = Counter()
    for _, pair in sorted(by_pair.items()):
        labels = {row.rating.intended: row.label for row in pair}
        gap = labels["high"] - labels["low"] if len(pair) == len(labels) == 2 else None
        if gap is not None:
            signs[(gap > 0) - (gap < 0)] += 1
        fault = _pair_fault(pair, gap, rules)
        if fault is None:
            remaining += pair
        else:
            dropped += [Dropped.of(row.rating, *fault) for row in pair]
    authors: dict[str, set[str]] = defaultdict(set)
    rated = {row.first.row_id for row in rows}
    for condition in conditions:
        row_id = row_id_of(condition.pair_id, condition.condition)
        authors[row_id] |= {condition.origin, condition.prefilled_by}
        if row_id not in rated:
            dropped.append(Dropped.of(condition, "not rated", condition.intended))
    labelled = []
    for rating, label, origins in remaining:
        models = (origins | authors[rating.row_id]) - {HUMAN, ""}
        texts = (rating.sentence1, rating.sentence2, rating.condition)
        origin = ", ".join(sorted(models)) or HUMAN
        labelled.append(DatasetRow(*texts, label, rating.pair_id, origin))
    return Decision(labelled, dropped, OrderCheck(signs[1], signs[0], signs[-1]))


def _decide_row(row: RatedRow, rules: LabelRules) -> _Labelled | Dropped:
    votes = (*row.people, *row.models) if rules.count_models else row.people
    verdicts = [vote.label for vote in votes]
    if len(verdicts) < rules.min_ratings:
        return Dropped.of(row.first, "too few ratings", f"{len(verdicts)} of {rules.min_ratings}")
    detail = "ratings " + " ".join(map(str, sorted(verdicts)))
    if len({vote.intended for vote in (*row.people, *row.models)}) > 1:
        return Dropped.of(row.first, "one condition is both high and low", detail)
    if verdicts.count(DOES_NOT_APPLY) / len(verdicts) >= rules.invalid_share:
        return Dropped.of(row.first, "the condition does not apply", detail)
    labels = [verdict for verdict in verdicts if verdict != DOES_NOT_APPLY]
    label = plurality(labels) if rules.how == "majority" else median(labels)
    if label is None:
        return Dropped.of(row.first, "no majority", detail)
    origins: set[str] = set()
    for vote in votes:
        if vote.label != DOES_NOT_APPLY:
            origins |= {vote.origin, vote.prefilled_by, vote.condition_origin}
    return _Labelled(row.first, float(label), origins)


def _pair_fault(
    pair: list[_Labelled], gap: float | None, rules: LabelRules
) -> tuple[str, str] | None:
    """Return why a pair is dropped, and the detail; None if it is not."""
    if len(pair) == 1 and not rules.keep_lone:
        return "the other row of the pair was dropped", f"label {pair[0].label:g}"
    if gap is None or gap > 0 or rules.order == "report":
        return None
    labels = ", ".join(f"C-{row.rating.intended} {row.label:g}" for row in pair)
    if gap < 0:
        return "the high condition is rated lower than the low one", labels
    if rules.order == "drop-unordered":
        return "both conditions are rated alike", labels
    return None
