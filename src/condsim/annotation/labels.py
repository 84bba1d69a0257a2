"""One label for each row from its ratings; rows without a label are listed with the reason.

C-STS takes one rating of a row, in which the annotator may say that the condition does not apply
(§2.2.2, stage 3). With several, condsim takes their median or the label with the most votes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, multimode
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from condsim.annotation.records import HUMAN, Condition, DatasetRow, Intended, Rating, row_id_of
from condsim.config import Settings
from condsim.errors import InputError
from condsim.rows.records import DOES_NOT_APPLY, TableRow
from condsim.types import IntArray

LABELS = (1, 2, 3, 4, 5)
VERDICTS = (DOES_NOT_APPLY, *LABELS)


@dataclass(frozen=True, slots=True)
class RatedRow:
    """A pair under a condition, with its ratings; not ``intended`` if written for both."""

    row_id: str
    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended | None
    people: tuple[Rating, ...]
    models: tuple[Rating, ...]


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
    if not rows:
        raise InputError("Ratings: at least one row is needed.")
    return tuple(
        _rated_row(row_id, [votes[name] for name in sorted(votes)])
        for row_id, votes in sorted(rows.items())
    )


def _rated_row(row_id: str, votes: list[Rating]) -> RatedRow:
    first = votes[0]
    for vote in votes:
        for column in ("pair_id", "sentence1", "sentence2", "condition"):
            if getattr(vote, column) != getattr(first, column):
                raise InputError(
                    f"Ratings: those of the row {row_id} by {first.annotator!r} and "
                    f"{vote.annotator!r} differ in {column!r}; ratings of a row must have the same "
                    "texts."
                )
    intentions = {vote.intended for vote in votes}
    return RatedRow(
        row_id,
        *(first.pair_id, first.sentence1, first.sentence2, first.condition),
        intended=first.intended if len(intentions) == 1 else None,
        people=tuple(vote for vote in votes if vote.origin == HUMAN),
        models=tuple(vote for vote in votes if vote.origin != HUMAN),
    )


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
        how: ``median``: an even number of labels may give one in between, such as 2.5;
            ``majority``: the label with more votes than any other; a tie drops the row.
        min_ratings: Rows with fewer ratings are dropped.
        invalid_share: A row is dropped if at least this share of its ratings says that the
            condition does not apply.
        order: Pairs whose C-High condition is not rated above their C-Low one: ``report`` counts
            them, ``drop-reversed`` drops pairs rated the other way round, ``drop-unordered`` ties
            as well. The label is what people rated in any case.
        keep_lone: Whether to keep a row whose pair has lost its other row. The released C-STS has
            every pair twice.
        count_models: Whether ratings by models count as votes.
    """

    what = "labels"

    how: Literal["median", "majority"] = "median"
    min_ratings: Annotated[int, Field(ge=1)] = 1
    invalid_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    order: Literal["report", "drop-reversed", "drop-unordered"] = "report"
    keep_lone: bool = False
    count_models: bool = False


@dataclass(frozen=True, slots=True)
class DecidedRow:
    """A row with its label; origins are "human" and models that took part, sorted."""

    row: RatedRow
    label: float
    origins: tuple[str, ...]


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
    def of(cls, row: RatedRow | Condition | DatasetRow, reason: str, detail: str) -> Dropped:
        """Drop a row."""
        return cls(row.pair_id, row.sentence1, row.sentence2, row.condition, reason, detail)


@dataclass(frozen=True)
class OrderCheck:
    """Numbers of pairs with both rows labeled, by the order of the labels."""

    as_intended: int
    ties: int
    reversed: int

    @property
    def pairs(self) -> int:
        """Number of all pairs."""
        return self.as_intended + self.ties + self.reversed


@dataclass(frozen=True)
class Decision:
    """Labeled rows by pair, dropped rows, and the order before any pair was dropped for it."""

    labelled: list[DecidedRow]
    dropped: list[Dropped]
    order: OrderCheck


def decide_labels(rows: Sequence[RatedRow], rules: LabelRules) -> Decision:
    """Give each row its label, or the reason why it has none."""
    labelled: dict[str, list[DecidedRow]] = defaultdict(list)
    dropped: list[Dropped] = []
    for row in rows:
        outcome = _decide_row(row, rules)
        if isinstance(outcome, Dropped):
            dropped.append(outcome)
        else:
            labelled[row.pair_id].append(outcome)
    remaining: list[DecidedRow] = []
    signs: Counter[int] = Counter()
    for _, pair_rows in sorted(labelled.items()):
        gap = _high_low_gap(pair_rows)
        if gap is not None:
            signs[(gap > 0) - (gap < 0)] += 1
        fault = _pair_fault(pair_rows, gap, rules)
        if fault is None:
            remaining += pair_rows
        else:
            dropped += [Dropped.of(decided.row, *fault) for decided in pair_rows]
    return Decision(remaining, dropped, OrderCheck(signs[1], ties=signs[0], reversed=signs[-1]))


def unrated_conditions(conditions: Iterable[Condition], rows: Sequence[RatedRow]) -> list[Dropped]:
    """List the conditions that were written and never rated, in their order."""
    rated = {row.row_id for row in rows}
    return [
        Dropped.of(condition, "not rated", condition.intended)
        for condition in conditions
        if row_id_of(condition.pair_id, condition.condition) not in rated
    ]


def _decide_row(row: RatedRow, rules: LabelRules) -> DecidedRow | Dropped:
    votes = (*row.people, *row.models) if rules.count_models else row.people
    verdicts = [vote.label for vote in votes]
    if len(verdicts) < rules.min_ratings:
        return Dropped.of(row, "too few ratings", f"{len(verdicts)} of {rules.min_ratings}")
    detail = "ratings " + " ".join(map(str, sorted(verdicts)))
    if row.intended is None:
        return Dropped.of(row, "one condition is both high and low", detail)
    if verdicts.count(DOES_NOT_APPLY) / len(verdicts) >= rules.invalid_share:
        return Dropped.of(row, "the condition does not apply", detail)
    labels = [verdict for verdict in verdicts if verdict != DOES_NOT_APPLY]
    label = plurality(labels) if rules.how == "majority" else median(labels)
    if label is None:
        return Dropped.of(row, "no majority", detail)
    origins: set[str] = set()
    for vote in votes:
        if vote.label != DOES_NOT_APPLY:
            origins |= {vote.origin, vote.prefilled_by, vote.condition_origin}
    return DecidedRow(row, float(label), tuple(sorted(origins - {""})))


def _high_low_gap(rows: list[DecidedRow]) -> float | None:
    """Return the C-High label minus the C-Low label; None without exactly one of each."""
    labels: dict[Intended | None, float] = {decided.row.intended: decided.label for decided in rows}
    if len(rows) != 2 or len(labels) != 2:
        return None
    return labels["high"] - labels["low"]


def _pair_fault(
    rows: list[DecidedRow], gap: float | None, rules: LabelRules
) -> tuple[str, str] | None:
    """Return why a pair is dropped, and the detail; None if it is not."""
    if len(rows) == 1 and not rules.keep_lone:
        return "the other row of the pair was dropped", f"label {rows[0].label:g}"
    if gap is None or gap > 0 or rules.order == "report":
        return None
    labels = ", ".join(f"C-{decided.row.intended} {decided.label:g}" for decided in rows)
    if gap < 0:
        return "the high condition is rated lower than the low one", labels
    if rules.order == "drop-unordered":
        return "both conditions are rated alike", labels
    return None
