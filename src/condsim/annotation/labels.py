"""One label for each row from its ratings; what gets none is listed with the reason."""

# C-STS takes one rating a row, in which the annotator may say that the condition does not apply
# (§2.2.2, stage 3). With several, condsim takes their median or the label most voted for.

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, multimode
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from condsim.config import Settings
from condsim.errors import InputError
from condsim.rows.records import (
    DOES_NOT_APPLY,
    HUMAN,
    Condition,
    DatasetRow,
    Intended,
    Rating,
    TableRow,
    row_id_of,
)
from condsim.types import IntArray

LABELS = (1, 2, 3, 4, 5)  # the Likert scale
VERDICTS = (DOES_NOT_APPLY, *LABELS)  # all that a rating can say


@dataclass(frozen=True, slots=True)
class RatedRow:
    """A pair under a condition, with all ratings of it."""

    row_id: str
    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended | None  # None if the condition was written for both
    people: tuple[Rating, ...]  # by annotator in the order of the alphabet
    models: tuple[Rating, ...]  # likewise


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
        row_id,
        *(first.pair_id, first.sentence1, first.sentence2, first.condition),
        intended=first.intended if len(intended) == 1 else None,
        people=tuple(vote for vote in votes if vote.origin == HUMAN),
        models=tuple(vote for vote in votes if vote.origin != HUMAN),
    )


def vote_counts(votes: Sequence[Sequence[Rating]]) -> IntArray:
    """Counts how often each row was given each verdict of `VERDICTS`, ``(n, 6)``."""
    labels = [[rating.label for rating in ratings] for ratings in votes]
    counts = [[row.count(verdict) for verdict in VERDICTS] for row in labels]
    return np.array(counts, np.int64).reshape(-1, len(VERDICTS))


def plurality(labels: Sequence[int]) -> int | None:
    """Gives the verdict that more voted for than for any other; None for ``[2, 5]``."""
    most = multimode(labels)
    return most[0] if len(most) == 1 else None


class LabelRules(Settings):
    """How ratings become labels, and what is left out."""

    what = "labels"

    # ``median``: with an even number of labels it may lie between two, such as 2.5; ``majority``:
    # the label that more voted for than for any other, and the row is dropped if several tie.
    how: Literal["median", "majority"] = "median"
    min_ratings: Annotated[int, Field(ge=1)] = 1  # rows with fewer are dropped
    # Rows are dropped of which at least this share of the ratings says that the condition does not
    # apply.
    invalid_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    # What becomes of pairs whose C-High condition is not rated above their C-Low one: ``report``
    # counts them, ``drop-reversed`` drops pairs rated the other way round, ``drop-unordered`` also
    # ties. The label is what people rated either way.
    order: Literal["report", "drop-reversed", "drop-unordered"] = "report"
    # Whether to keep a row whose pair has lost its other row. The released C-STS has every pair
    # twice.
    keep_lone: bool = False
    count_models: bool = False  # whether ratings by models count as votes


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row with its label."""

    row: RatedRow
    label: float  # similarity from 1 to 5
    origins: tuple[str, ...]  # "human" and models with a hand in rating or condition, sorted


@dataclass(frozen=True, slots=True)
class Dropped(TableRow):
    """A row that is not in the data set."""

    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    reason: str  # one of a few
    detail: str = ""  # the ratings, or what else tells of the case

    @classmethod
    def of(cls, row: RatedRow | Condition | DatasetRow, reason: str, detail: str) -> Dropped:
        """Says why a row is dropped."""
        return cls(row.pair_id, row.sentence1, row.sentence2, row.condition, reason, detail)


@dataclass(frozen=True)
class OrderCheck:
    """Whether conditions turned out as they were meant; pairs with both rows labelled."""

    as_intended: int  # pairs whose C-High row has the higher label
    ties: int
    reversed: int  # pairs whose C-Low row has the higher label

    @property
    def pairs(self) -> int:
        """All pairs that were checked."""
        return self.as_intended + self.ties + self.reversed


@dataclass(frozen=True)
class Decision:
    """What became of the rated rows."""

    labelled: list[LabelledRow]  # by pair
    dropped: list[Dropped]
    order: OrderCheck  # before any pair was dropped for it


def decide_labels(rows: Sequence[RatedRow], rules: LabelRules) -> Decision:
    """Gives each row its label, or the reason why it has none.

    Returns:
        The labelled and the dropped rows; together they are all rows.
    """
    labelled: dict[str, list[LabelledRow]] = defaultdict(list)  # by pair
    dropped: list[Dropped] = []
    for row in rows:
        outcome = _label(row, rules)
        if isinstance(outcome, Dropped):
            dropped.append(outcome)
        else:
            labelled[row.pair_id].append(outcome)
    gaps = {pair: _gap(pair_rows) for pair, pair_rows in labelled.items()}
    kept: list[LabelledRow] = []
    for pair, pair_rows in sorted(labelled.items()):
        if fault := _fault(pair_rows, gaps[pair], rules):
            dropped += [Dropped.of(one.row, *fault) for one in pair_rows]
        else:
            kept += pair_rows
    signs = Counter((gap > 0) - (gap < 0) for gap in gaps.values() if gap is not None)
    return Decision(kept, dropped, OrderCheck(signs[1], ties=signs[0], reversed=signs[-1]))


def unrated_conditions(conditions: Iterable[Condition], rows: Sequence[RatedRow]) -> list[Dropped]:
    """Lists the conditions that were written and never rated, in their order."""
    rated = {row.row_id for row in rows}
    return [
        Dropped.of(one, "not rated", one.intended)
        for one in conditions
        if row_id_of(one.pair_id, one.condition) not in rated
    ]


def _label(row: RatedRow, rules: LabelRules) -> LabelledRow | Dropped:
    votes = (*row.people, *row.models) if rules.count_models else row.people
    verdicts = [vote.label for vote in votes]
    if len(verdicts) < rules.min_ratings:
        return Dropped.of(row, "too few ratings", f"{len(verdicts)} of {rules.min_ratings}")
    shown = "ratings " + " ".join(map(str, sorted(verdicts)))
    if row.intended is None:
        return Dropped.of(row, "one condition is both high and low", shown)
    if verdicts.count(DOES_NOT_APPLY) / len(verdicts) >= rules.invalid_share:
        return Dropped.of(row, "the condition does not apply", shown)
    labels = [verdict for verdict in verdicts if verdict != DOES_NOT_APPLY]
    label = plurality(labels) if rules.how == "majority" else median(labels)
    if label is None:
        return Dropped.of(row, "no majority", shown)
    hands = {
        name
        for vote in votes
        if vote.label != DOES_NOT_APPLY
        for name in (vote.origin, vote.prefilled_by, vote.condition_origin)
    }
    return LabelledRow(row, float(label), tuple(sorted(hands - {""})))


def _gap(rows: list[LabelledRow]) -> float | None:
    """Label of the C-High row minus that of the C-Low row; None without exactly one of each."""
    of: dict[Intended | None, float] = {one.row.intended: one.label for one in rows}
    if len(rows) != 2 or len(of) != 2:
        return None
    return of["high"] - of["low"]


def _fault(rows: list[LabelledRow], gap: float | None, rules: LabelRules) -> tuple[str, str] | None:
    """Why a pair is dropped, and the detail; None if it is not."""
    if len(rows) == 1 and not rules.keep_lone:
        return "the other row of the pair was dropped", f"label {rows[0].label:g}"
    if gap is None or gap > 0 or rules.order == "report":
        return None
    labels = ", ".join(f"C-{one.row.intended} {one.label:g}" for one in rows)
    if gap < 0:
        return "the high condition is rated lower than the low one", labels
    if rules.order == "drop-unordered":
        return "both conditions are rated alike", labels
    return None
