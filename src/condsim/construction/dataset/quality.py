"""All that can be said of a file of ratings before it becomes a data set."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from condsim.construction.dataset.agreement import (
    AgainstPeople,
    Agreement,
    measure_agreement,
    model_agreement,
    one_person_agreement,
)
from condsim.construction.dataset.labels import RatedRow, plurality
from condsim.construction.row_files import plain_values
from condsim.construction.rows import DOES_NOT_APPLY, Rating

# When an annotator gets a remark.
ENOUGH = 20  # ratings, or there are too few to tell
LOW_AGREEMENT = 0.6  # agrees with the majority less than this share of the typical one
TOO_FAST = 1 / 3  # takes less than this share of the typical median time
ONE_VERDICT = 0.9  # gives one verdict for at least this share of the ratings


@dataclass(frozen=True)
class Times:
    """How long a rating takes, in seconds; NaN where no time is known."""

    known: int  # ratings whose time is known
    median: float
    tenth: float  # a tenth of the ratings take less
    ninetieth: float  # a tenth of the ratings take longer
    hours: float  # all known times together


@dataclass(frozen=True)
class AnnotatorQuality:
    """One annotator among the others; shares are in [0, 1], NaN where nothing is compared."""

    annotator: str
    ratings: int
    does_not_apply: float  # share that say the condition does not apply
    compared: int  # ratings of rows on which the others give one verdict more than any other
    agrees: float  # share of those that are that verdict
    within_one: float  # share of those that are at most one label from it
    offset: float  # mean of the label minus the median label of the others
    seconds: float  # median time of a rating
    remarks: tuple[str, ...] = ()  # what someone should look at; empty is good


def time_per_rating(ratings: Iterable[Rating]) -> Times:
    """Measures how long a rating takes."""
    seconds = [rating.seconds for rating in ratings if rating.seconds is not None]
    if not seconds:
        return Times(0, math.nan, math.nan, math.nan, 0.0)
    tenth, middle, ninetieth = np.percentile(seconds, [10, 50, 90]).tolist()
    return Times(len(seconds), middle, tenth, ninetieth, sum(seconds) / 3600)


def annotator_quality(rows: Sequence[RatedRow]) -> tuple[AnnotatorQuality, ...]:
    """Measures each person against the others who rated the same rows.

    The majority is that of the others: with three annotators one's own vote would make half of it.
    """
    own: dict[str, list[Rating]] = defaultdict(list)
    against: dict[str, list[tuple[Rating, list[int]]]] = defaultdict(list)
    for row in rows:
        for rating in row.people:
            own[rating.annotator].append(rating)
            others = [vote.label for vote in row.people if vote is not rating]
            if others:
                against[rating.annotator].append((rating, others))
    measured = [_measured(name, own[name], against[name]) for name in sorted(own)]
    typical_agreement = _median(one.agrees for one in measured if one.compared >= ENOUGH)
    typical_seconds = _median(one.seconds for one in measured)
    return tuple(
        replace(one, remarks=_remarks(one, own[one.annotator], typical_agreement, typical_seconds))
        for one in measured
    )


def _measured(
    name: str, ratings: list[Rating], against: list[tuple[Rating, list[int]]]
) -> AnnotatorQuality:
    agreed: list[bool] = []
    near: list[bool] = []
    offsets: list[float] = []
    for rating, others in against:
        majority = plurality(others)
        if majority is not None:
            agreed.append(rating.label == majority)
            both_apply = DOES_NOT_APPLY not in (rating.label, majority)
            close = both_apply and abs(rating.label - majority) <= 1
            near.append(close or agreed[-1])
        labels = [label for label in others if label != DOES_NOT_APPLY]
        if labels and rating.label != DOES_NOT_APPLY:
            offsets.append(rating.label - median(labels))
    return AnnotatorQuality(
        annotator=name,
        ratings=len(ratings),
        does_not_apply=_mean(rating.label == DOES_NOT_APPLY for rating in ratings),
        compared=len(agreed),
        agrees=_mean(agreed),
        within_one=_mean(near),
        offset=_mean(offsets),
        seconds=_median(rating.seconds for rating in ratings if rating.seconds is not None),
    )


def _remarks(
    one: AnnotatorQuality, ratings: list[Rating], agreement: float, seconds: float
) -> tuple[str, ...]:
    if one.ratings < ENOUGH:
        return ()
    remarks = []
    if one.compared >= ENOUGH and one.agrees < LOW_AGREEMENT * agreement:
        remarks.append("low agreement")
    if one.seconds < TOO_FAST * seconds:
        remarks.append("fast")
    most = max(Counter(rating.label for rating in ratings).values())
    if most >= ONE_VERDICT * one.ratings:
        remarks.append("one verdict")
    return tuple(remarks)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else math.nan


def _median(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(median(known)) if known else math.nan


@dataclass(frozen=True)
class RatingReport:
    """Agreement and quality of ratings."""

    agreement: Agreement
    times: Times
    annotators: tuple[AnnotatorQuality, ...]  # by name
    models: tuple[AgainstPeople, ...]
    one_person: AgainstPeople | None  # on the rows of models if any; None if no row has two people

    def to_dict(self) -> dict[str, object]:
        """Gives values that JSON can hold by name; NaN is None."""
        return plain_values(self)


def report_ratings(rows: Sequence[RatedRow]) -> RatingReport:
    """Reports on ratings.

    Args:
        rows: The rows with their ratings, of `collect_votes`.

    Returns:
        The report.

    Raises:
        InputError: If no row has a rating by a person.
        MissingExtraError: If statsmodels or krippendorff is not installed.
    """
    models = model_agreement(rows)
    return RatingReport(
        agreement=measure_agreement(rows),
        times=time_per_rating(rating for row in rows for rating in row.people),
        annotators=annotator_quality(rows),
        models=models,
        one_person=one_person_agreement(rows, beside_models=bool(models)),
    )
