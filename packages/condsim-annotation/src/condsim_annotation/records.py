"""Rows of an annotation project, and one label for each row from its ratings.

C-STS takes one rating of a row, in which the annotator may say that the condition does not apply
(§2.2.2, stage 3). With several, condsim takes their median or the label with the most votes; rows
without a label are listed with the reason.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, multimode
from typing import Annotated, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from pydantic import Field

from condsim.config import Settings
from condsim.errors import InputError, check_name
from condsim.rows.records import TableRow
from condsim.types import IntArray
from condsim_annotation.tables import DOES_NOT_APPLY

Intended: TypeAlias = Literal["high", "low"]
"""The condition of a pair: C-High or C-Low (C-STS §2.2.2, stage 2)."""

HUMAN = "human"
"""Origin of a text or rating by a person; otherwise the origin is the name of a model."""

LABELS = (1, 2, 3, 4, 5)
RATED_LABELS = (DOES_NOT_APPLY, *LABELS)


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
        check_name("value of 'intended'", self.intended, get_args(Intended))


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
        check_name("value of 'intended'", self.intended, get_args(Intended))
        check_label(self.label, subject="'label' of a rating")


@dataclass(frozen=True, slots=True)
class DatasetRow(TableRow):
    """A row of the finished data set; the first four columns are as in the C-STS release.

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


def check_label(label: int, *, subject: str) -> None:
    """Reject a number that is not on the scale."""
    if label != DOES_NOT_APPLY and not 1 <= label <= 5:
        raise InputError(
            f"{subject} must be a whole number from 1 to 5, or {DOES_NOT_APPLY} if the condition "
            f"does not apply; got {label!r}."
        )


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
                    f"Ratings: the ratings of row {rating.row_id} by {first.annotator!r} and "
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
    """Count how often each row was given each of `RATED_LABELS`, ``(n, 6)``."""
    counts = np.zeros((len(votes), len(RATED_LABELS)), np.int64)
    for row, ratings in enumerate(votes):
        for rating in ratings:
            counts[row, RATED_LABELS.index(rating.label)] += 1
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

    labeled: list[DatasetRow]
    dropped: list[Dropped]
    order: OrderCheck


class _Labeled(NamedTuple):
    rating: Rating
    label: float
    origins: set[str]


def decide_labels(
    rows: Sequence[RatedRow], rules: LabelRules, *, conditions: Iterable[Condition] = ()
) -> Decision:
    """Give each row its label, or the reason why it has none.

    Models that proposed a condition are origins of its row; those never rated are dropped.
    """
    by_pair: dict[str, list[_Labeled]] = defaultdict(list)
    dropped: list[Dropped] = []
    for row in rows:
        decided = _decide_row(row, rules)
        if isinstance(decided, Dropped):
            dropped.append(decided)
        else:
            by_pair[decided.rating.pair_id].append(decided)
    remaining: list[_Labeled] = []
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
    labeled = []
    for rating, label, origins in remaining:
        models = (origins | authors[rating.row_id]) - {HUMAN, ""}
        texts = (rating.sentence1, rating.sentence2, rating.condition)
        origin = ", ".join(sorted(models)) or HUMAN
        labeled.append(DatasetRow(*texts, label, rating.pair_id, origin))
    return Decision(labeled, dropped, OrderCheck(signs[1], signs[0], signs[-1]))


def _decide_row(row: RatedRow, rules: LabelRules) -> _Labeled | Dropped:
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
    return _Labeled(row.first, float(label), origins)


def _pair_fault(
    pair: list[_Labeled], gap: float | None, rules: LabelRules
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
