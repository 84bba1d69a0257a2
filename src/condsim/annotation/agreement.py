"""What ratings are worth: how far people agree, how good each is, and how far models agree."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from condsim.annotation.labels import LABELS, RatedRow, plurality, vote_counts
from condsim.errors import InputError, require
from condsim.evaluation.correlation import spearman
from condsim.rows.records import DOES_NOT_APPLY, Rating
from condsim.types import IntArray


@dataclass(frozen=True)
class Kappa:
    """Fleiss' kappa, which needs the same number of ratings of every row."""

    value: float  # at most 1 (all agree), 0 is chance; NaN without two ratings or two labels
    raters: int  # ratings of each row counted: what most rows with two or more have
    rows: int  # counted
    left_out: int  # rows with another number of ratings


@dataclass(frozen=True)
class Agreement:
    """How far people agree; alpha is Krippendorff's, at most 1, 0 is chance."""

    rows: int  # that people rated
    ratings: int
    annotators: int
    does_not_apply: int  # ratings that say the condition does not apply
    ratings_per_row: tuple[tuple[int, int], ...]  # (number of ratings, rows that have it)
    kappa: Kappa  # of the labels 1 to 5, without "does not apply"
    kappa_verdicts: Kappa  # with "does not apply" as a sixth label
    alpha: float  # of the labels 1 to 5, ordinal; NaN where it does not exist
    alpha_rows: int  # rows with two labels or more
    alpha_applies: float  # of whether the condition applies
    exact: float  # share of two labels of one row that are equal; NaN without such labels
    within_one: float  # share that differ by 1 at most


def measure_agreement(rows: Sequence[RatedRow]) -> Agreement:
    """Measures how far the people agree; ratings of models take no part."""
    rated = [row.people for row in rows if row.people]
    if not rated:
        raise InputError(
            "Agreement is measured between people, and none of the ratings has the origin 'human'."
        )
    verdicts = vote_counts(rated)  # (rows, 6)
    labels = verdicts[:, 1:]  # (rows, 5)
    applies = np.stack([verdicts[:, 0], labels.sum(axis=1)], axis=1)  # (rows, 2)
    exact, within_one = _pairwise(labels)
    return Agreement(
        rows=len(rated),
        ratings=int(verdicts.sum()),
        annotators=len({rating.annotator for votes in rated for rating in votes}),
        does_not_apply=int(verdicts[:, 0].sum()),
        ratings_per_row=tuple(sorted(Counter(verdicts.sum(axis=1).tolist()).items())),
        kappa=fleiss_kappa(labels),
        kappa_verdicts=fleiss_kappa(verdicts),
        alpha=krippendorff_alpha(labels, distance="ordinal"),
        alpha_rows=int((labels.sum(axis=1) >= 2).sum()),
        alpha_applies=krippendorff_alpha(applies, distance="nominal"),
        exact=exact,
        within_one=within_one,
    )


def fleiss_kappa(counts: ArrayLike) -> Kappa:
    """Computes Fleiss' kappa over the rows with the most common number of ratings.

    Fleiss, "Measuring nominal scale agreement among many raters", 1971. Of equally common numbers
    the larger is taken.

    Args:
        counts: How often each row was given each label, whole numbers ``(n, labels)``.

    Returns:
        The value, and which rows it is of.

    Raises:
        InputError: If the counts are negative or of another shape.
        MissingExtraError: If statsmodels is not installed.
    """
    table = _table(counts)
    ratings = table.sum(axis=1)
    frequent = Counter(ratings[ratings >= 2].tolist())
    if not frequent:
        return Kappa(math.nan, raters=0, rows=0, left_out=len(table))
    raters, rows = max(frequent.items(), key=lambda item: (item[1], item[0]))
    counted = table[ratings == raters]
    value = math.nan
    if counted.any(axis=0).sum() >= 2:  # if all are the same, chance agreement is certain
        library = require("statsmodels.stats.inter_rater", extra="build")
        value = float(library.fleiss_kappa(counted))
    return Kappa(value, raters=int(raters), rows=rows, left_out=len(table) - rows)


def krippendorff_alpha(
    counts: ArrayLike, *, distance: Literal["nominal", "ordinal"] = "ordinal"
) -> float:
    """Computes Krippendorff's alpha; rows may have any number of ratings.

    Krippendorff, "Computing Krippendorff's alpha-reliability", 2011. Rows with fewer than two
    ratings say nothing of agreement and are left out.

    Args:
        counts: How often each row was given each label, whole numbers ``(n, labels)``; for the
            ordinal distance the labels are in their order.
        distance: Whether labels are ordered.

    Returns:
        At most 1 (all agree); 0 is chance, NaN where it does not exist.

    Raises:
        InputError: If the counts are negative or of another shape.
        MissingExtraError: If krippendorff is not installed.
    """
    table = _table(counts)
    table = table[table.sum(axis=1) >= 2]
    if table.any(axis=0).sum() < 2:
        return math.nan
    library = require("krippendorff", extra="build")
    return float(library.alpha(value_counts=table, level_of_measurement=distance))


def _table(counts: ArrayLike) -> IntArray:
    table = np.asarray(counts, dtype=np.int64)
    if table.ndim != 2 or (table.size and table.min() < 0):
        raise InputError(
            "Counts of ratings must be whole numbers of 0 or more, (rows, labels). Got the shape "
            f"{table.shape}."
        )
    return table


def _pairwise(labels: IntArray) -> tuple[float, float]:
    """Share of two labels of one row, ``(n, 5)``, that are equal, and that are at most 1 apart."""
    ratings = labels.sum(axis=1)
    pairs = int((ratings * (ratings - 1)).sum()) // 2
    if not pairs:
        return math.nan, math.nan
    equal = int((labels * (labels - 1)).sum()) // 2
    near = int((labels[:, :-1] * labels[:, 1:]).sum())
    return equal / pairs, (equal + near) / pairs


@dataclass(frozen=True)
class AgainstPeople:
    """Ratings against the median of what people say of the same rows; shares are in [0, 1]."""

    # Where at least half of the people say that the condition does not apply, so does their
    # verdict; ``alpha`` and ``exact`` count the rows where the median is a whole label.

    rater: str  # a model, "MODEL, not shown" for people not shown its rating, or "one person"
    rows: int  # both have rated
    compared: int  # rows with a label from both
    spearman: float  # x100; NaN if one side is constant
    alpha: float  # Krippendorff's, ordinal; NaN where it does not exist
    exact: float  # share where both are equal
    within_one: float  # share where both differ by 1 at most
    offset: float  # mean of the rater's label minus that of people
    applies: float  # share of all rows on which both agree whether the condition applies
    shown: int = 0  # ratings by people who were shown the model's first


_Compared = Sequence[tuple[int, Sequence[Rating]]]  # a label, and the ratings it is held against


def model_agreement(rows: Sequence[RatedRow]) -> tuple[AgainstPeople, ...]:
    """Measures each model against the people, and against those not shown its ratings."""
    of_model: dict[str, list[tuple[int, Sequence[Rating]]]] = defaultdict(list)
    for row in rows:
        if row.people:
            for rating in row.models:
                of_model[rating.origin].append((rating.label, row.people))
    measured = []
    for name, rated in sorted(of_model.items()):
        others = [
            (label, [one for one in people if one.prefilled_by != name]) for label, people in rated
        ]
        shown = sum(len(people) for _, people in rated) - sum(len(free) for _, free in others)
        measured.append(_against(name, rated, shown=shown))
        free = [(label, people) for label, people in others if people]
        if shown and free:
            measured.append(_against(f"{name}, not shown", free))
    return tuple(measured)


def one_person_agreement(rows: Sequence[RatedRow], *, beside_models: bool) -> AgainstPeople | None:
    """Measures every person against the others in the same way: what a model is held to."""
    compared = [
        (rating.label, [other for other in row.people if other is not rating])
        for row in rows
        if len(row.people) >= 2 and (row.models or not beside_models)
        for rating in row.people
    ]
    return _against("one person", compared) if compared else None


def _verdict(votes: Sequence[Rating]) -> float:
    """The median label; `DOES_NOT_APPLY` where at least half say so."""
    labels = [vote.label for vote in votes if vote.label != DOES_NOT_APPLY]
    return median(labels) if 2 * len(labels) > len(votes) else DOES_NOT_APPLY


def _against(name: str, rated: _Compared, *, shown: int = 0) -> AgainstPeople:
    both = [(label, _verdict(people)) for label, people in rated]
    given, people = np.array(both, dtype=np.float64).T  # (rows,), (rows,)
    applies = (given != DOES_NOT_APPLY) & (people != DOES_NOT_APPLY)
    neither = (given == DOES_NOT_APPLY) & (people == DOES_NOT_APPLY)
    given, people = given[applies], people[applies]
    apart = given - people
    whole = people == np.round(people)
    labels = np.stack([given, people])[:, whole]  # (2, whole)
    return AgainstPeople(
        rater=name,
        rows=len(both),
        compared=len(given),
        spearman=100 * spearman(given, people) if len(given) else math.nan,
        alpha=krippendorff_alpha((labels[..., None] == LABELS).sum(axis=0)),
        exact=_mean(apart[whole] == 0),
        within_one=_mean(np.abs(apart) <= 1),
        offset=_mean(apart),
        applies=_mean(applies | neither),
        shown=shown,
    )


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


_Rated = list[tuple[Rating, list[int]]]  # ratings of one person with the labels of the others


def annotator_quality(rows: Sequence[RatedRow]) -> tuple[AnnotatorQuality, ...]:
    """Measures each person against the majority of the others who rated the same rows."""
    compared: dict[str, _Rated] = defaultdict(list)
    for row in rows:
        for rating in row.people:
            others = [vote.label for vote in row.people if vote is not rating]
            compared[rating.annotator].append((rating, others))
    measured = [_measured(name, ratings) for name, ratings in sorted(compared.items())]
    agreement = _median(one.agrees for one in measured if one.compared >= ENOUGH)
    seconds = _median(one.seconds for one in measured)
    return tuple(
        replace(one, remarks=_remarks(one, compared[one.annotator], agreement, seconds))
        for one in measured
    )


def _measured(name: str, ratings: _Rated) -> AnnotatorQuality:
    agreed: list[bool] = []
    near: list[bool] = []
    offsets: list[float] = []
    for rating, others in ratings:
        if (majority := plurality(others)) is not None:
            agreed.append(rating.label == majority)
            both_apply = DOES_NOT_APPLY not in (rating.label, majority)
            near.append(agreed[-1] or (both_apply and abs(rating.label - majority) <= 1))
        labels = [label for label in others if label != DOES_NOT_APPLY]
        if labels and rating.label != DOES_NOT_APPLY:
            offsets.append(rating.label - median(labels))
    return AnnotatorQuality(
        annotator=name,
        ratings=len(ratings),
        does_not_apply=_mean(rating.label == DOES_NOT_APPLY for rating, _ in ratings),
        compared=len(agreed),
        agrees=_mean(agreed),
        within_one=_mean(near),
        offset=_mean(offsets),
        seconds=_median(rating.seconds for rating, _ in ratings if rating.seconds is not None),
    )


def _remarks(
    one: AnnotatorQuality, ratings: _Rated, agreement: float, seconds: float
) -> tuple[str, ...]:
    if one.ratings < ENOUGH:
        return ()
    remarks = []
    if one.compared >= ENOUGH and one.agrees < LOW_AGREEMENT * agreement:
        remarks.append("low agreement")
    if one.seconds < TOO_FAST * seconds:
        remarks.append("fast")
    most = max(Counter(rating.label for rating, _ in ratings).values())
    if most >= ONE_VERDICT * one.ratings:
        remarks.append("one verdict")
    return tuple(remarks)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return fmean(known) if known else math.nan


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


def report_ratings(rows: Sequence[RatedRow]) -> RatingReport:
    """Reports on ratings.

    Args:
        rows: The rows with their ratings, of `collect_votes`.

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
