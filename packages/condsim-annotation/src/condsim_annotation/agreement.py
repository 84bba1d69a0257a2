"""Quality of ratings: agreement between people, each annotator, and models against people."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from condsim.errors import InputError, require
from condsim.evaluation.statistics import spearman
from condsim.types import IntArray
from condsim_annotation.records import LABELS, RatedRow, Rating, plurality, vote_counts
from condsim_annotation.tables import DOES_NOT_APPLY

# Below this number of ratings an annotator gets no remark.
MIN_RATINGS = 20
# Remarks: agreement with the majority below this share of the typical one, a median time below this
# share of the typical one, and one verdict for at least this share of the ratings.
LOW_AGREEMENT_SHARE = 0.6
FAST_SHARE = 1 / 3
ONE_VERDICT_SHARE = 0.9


@dataclass(frozen=True)
class Kappa:
    """Fleiss' kappa of the rows that have the most common number of ratings, ``raters``.

    ``value`` is at most 1 (all agree), 0 is chance; NaN without two ratings or two labels.
    """

    value: float
    raters: int
    rows: int
    left_out: int


@dataclass(frozen=True)
class HumanAgreement:
    """Agreement between people; NaN where it is undefined.

    Attributes:
        ratings_per_row: (number of ratings, rows that have it).
        kappa: Of the labels 1 to 5; ``kappa_verdicts`` has "does not apply" as a sixth label.
        alpha: Krippendorff's alpha of the labels 1 to 5, ordinal, over the ``alpha_rows`` with two
            labels or more; ``alpha_applies``: of whether the condition applies.
        exact: Share of pairs of labels of one row that are equal; ``within_one``: that differ by
            at most 1.
    """

    rows: int
    ratings: int
    annotators: int
    does_not_apply: int
    ratings_per_row: tuple[tuple[int, int], ...]
    kappa: Kappa
    kappa_verdicts: Kappa
    alpha: float
    alpha_rows: int
    alpha_applies: float
    exact: float
    within_one: float


@dataclass(frozen=True)
class RatingTimes:
    """Median and percentiles of the known times of ratings in seconds, and their sum in hours."""

    known: int
    median: float
    tenth: float
    ninetieth: float
    hours: float


@dataclass(frozen=True)
class AnnotatorQuality:
    """One annotator among the others; shares are in [0, 1], NaN if nothing is compared.

    Attributes:
        compared: Ratings of rows on which one verdict of the others has the most votes.
        agrees: Share of those that are that verdict; ``within_one``: at most one label from it.
        offset: Mean of the label minus the median label of the others.
        seconds: Median time of a rating.
        remarks: Reasons to look at the ratings; empty is good.
    """

    annotator: str
    ratings: int
    does_not_apply: float
    compared: int
    agrees: float
    within_one: float
    offset: float
    seconds: float
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RaterAgreement:
    """Ratings against the median of people on the same rows; shares are in [0, 1].

    If at least half of the people say that the condition does not apply, so does their verdict.
    ``alpha`` and ``exact`` count the rows where the median is a whole label.

    Attributes:
        rater: A model, "MODEL, not shown" for people who did not see its rating, or "one person".
        compared: Rows with a label from both.
        spearman: x100.
        offset: Mean of the rater's label minus the label of people.
        applies: Share of all rows on which both agree whether the condition applies.
        shown: Ratings by people who saw the model's first.
    """

    rater: str
    rows: int
    compared: int
    spearman: float
    alpha: float
    exact: float
    within_one: float
    offset: float
    applies: float
    shown: int = 0


@dataclass(frozen=True)
class RatingReport:
    """Agreement and quality of ratings; one person is compared on the rows of models, if any."""

    agreement: HumanAgreement
    times: RatingTimes
    annotators: tuple[AnnotatorQuality, ...]
    models: tuple[RaterAgreement, ...]
    one_person: RaterAgreement | None


def report_ratings(rows: Sequence[RatedRow]) -> RatingReport:
    """Report on the ratings of rows."""
    models = model_agreement(rows)
    return RatingReport(
        agreement=measure_agreement(rows),
        times=time_per_rating(rating for row in rows for rating in row.people),
        annotators=annotator_quality(rows),
        models=models,
        one_person=one_person_agreement([row for row in rows if row.models or not models]),
    )


def measure_agreement(rows: Sequence[RatedRow]) -> HumanAgreement:
    """Measure the agreement of people; ratings of models are ignored."""
    rated = [row.people for row in rows if row.people]
    if not rated:
        raise InputError("Agreement: none of the ratings has the origin 'human'.")
    # (rows, 6), (rows, 5) and (rows, 2)
    verdicts = vote_counts(rated)
    labels = verdicts[:, 1:]
    applies = np.stack([verdicts[:, 0], labels.sum(axis=1)], axis=1)
    exact, within_one = _pairwise_shares(labels)
    return HumanAgreement(
        rows=len(rated),
        ratings=int(verdicts.sum()),
        annotators=len({rating.annotator for votes in rated for rating in votes}),
        does_not_apply=int(verdicts[:, 0].sum()),
        ratings_per_row=tuple(sorted(Counter(verdicts.sum(axis=1).tolist()).items())),
        kappa=fleiss_kappa(labels),
        kappa_verdicts=fleiss_kappa(verdicts),
        alpha=krippendorff_alpha(labels),
        alpha_rows=int((labels.sum(axis=1) >= 2).sum()),
        alpha_applies=krippendorff_alpha(applies, distance="nominal"),
        exact=exact,
        within_one=within_one,
    )


def _pairwise_shares(labels: IntArray) -> tuple[float, float]:
    """Return the shares of pairs of labels of a row, ``(n, 5)``, that are equal and within 1."""
    ratings = labels.sum(axis=1)
    pairs = int((ratings * (ratings - 1)).sum()) // 2
    if not pairs:
        return math.nan, math.nan
    equal = int((labels * (labels - 1)).sum()) // 2
    near = int((labels[:, :-1] * labels[:, 1:]).sum())
    return equal / pairs, (equal + near) / pairs


def fleiss_kappa(counts: ArrayLike) -> Kappa:
    """Compute Fleiss' kappa (1971) from the counts of each label by row, ``(n, labels)``.

    It needs the same number of ratings of every row. Of equally common numbers the larger is taken.
    """
    table = np.asarray(counts, dtype=np.int64)
    ratings = table.sum(axis=1)
    frequencies = Counter(ratings[ratings >= 2].tolist())
    if not frequencies:
        return Kappa(math.nan, raters=0, rows=0, left_out=len(table))
    raters, rows = max(frequencies.items(), key=lambda item: (item[1], item[0]))
    counted = table[ratings == raters]
    value = math.nan
    # With a single label, chance agreement is certain and kappa is undefined.
    if counted.any(axis=0).sum() >= 2:
        library = require("statsmodels.stats.inter_rater", extra="build")
        value = float(library.fleiss_kappa(counted))
    return Kappa(value, raters=raters, rows=rows, left_out=len(table) - rows)


def krippendorff_alpha(
    counts: ArrayLike, *, distance: Literal["nominal", "ordinal"] = "ordinal"
) -> float:
    """Compute Krippendorff's alpha (2011) from the counts of each label by row, ``(n, labels)``.

    The labels must be in their order for the ordinal distance. At most 1 (all agree); 0 is chance.
    """
    table = np.asarray(counts, dtype=np.int64)
    table = table[table.sum(axis=1) >= 2]
    if table.any(axis=0).sum() < 2:
        return math.nan
    library = require("krippendorff", extra="build")
    return float(library.alpha(value_counts=table, level_of_measurement=distance))


def model_agreement(rows: Sequence[RatedRow]) -> tuple[RaterAgreement, ...]:
    """Measure each model against all people, and against those who did not see its ratings."""
    by_model: dict[str, list[tuple[int, Sequence[Rating]]]] = defaultdict(list)
    for row in rows:
        for rating in row.models if row.people else ():
            by_model[rating.origin].append((rating.label, row.people))
    results = []
    for name, rated in sorted(by_model.items()):
        unseen = [
            (label, [rating for rating in people if rating.prefilled_by != name])
            for label, people in rated
        ]
        shown = sum(len(people) for _, people in rated) - sum(len(people) for _, people in unseen)
        results.append(replace(_compare_rater(name, rated), shown=shown))
        unseen = [(label, people) for label, people in unseen if people]
        if shown and unseen:
            results.append(_compare_rater(f"{name}, not shown", unseen))
    return tuple(results)


def one_person_agreement(rows: Sequence[RatedRow]) -> RaterAgreement | None:
    """Measure every person against the others; None if no row has two."""
    comparisons = []
    for row in rows:
        for rating in row.people if len(row.people) >= 2 else ():
            comparisons.append((rating.label, _peers(row, rating)))
    return _compare_rater("one person", comparisons) if comparisons else None


def _peers(row: RatedRow, rating: Rating) -> list[Rating]:
    return [peer for peer in row.people if peer is not rating]


def _median_verdict(votes: Sequence[Rating]) -> float:
    """Return the median label, or `DOES_NOT_APPLY` if at least half say so."""
    labels = [vote.label for vote in votes if vote.label != DOES_NOT_APPLY]
    return median(labels) if 2 * len(labels) > len(votes) else DOES_NOT_APPLY


def _compare_rater(name: str, rated: Sequence[tuple[int, Sequence[Rating]]]) -> RaterAgreement:
    """Compare labels of a rater, each with the ratings of people."""
    verdicts = [(label, _median_verdict(people)) for label, people in rated]
    rater, people = np.array(verdicts, dtype=np.float64).T
    rater_applies, people_applies = rater != DOES_NOT_APPLY, people != DOES_NOT_APPLY
    both_apply = rater_applies & people_applies
    rater, people = rater[both_apply], people[both_apply]
    offsets = rater - people
    is_label = people == np.round(people)
    labels = np.stack([rater, people])[:, is_label]
    return RaterAgreement(
        rater=name,
        rows=len(verdicts),
        compared=len(rater),
        spearman=100 * spearman(rater, people) if len(rater) else math.nan,
        alpha=krippendorff_alpha((labels[..., None] == LABELS).sum(axis=0)),
        exact=_mean_or_nan(offsets[is_label] == 0),
        within_one=_mean_or_nan(np.abs(offsets) <= 1),
        offset=_mean_or_nan(offsets),
        applies=_mean_or_nan(rater_applies == people_applies),
    )


def time_per_rating(ratings: Iterable[Rating]) -> RatingTimes:
    """Summarize the times of ratings."""
    seconds = [rating.seconds for rating in ratings if rating.seconds is not None]
    if not seconds:
        return RatingTimes(0, math.nan, math.nan, math.nan, 0.0)
    tenth, middle, ninetieth = np.percentile(seconds, [10, 50, 90]).tolist()
    return RatingTimes(len(seconds), middle, tenth, ninetieth, sum(seconds) / 3600)


def annotator_quality(rows: Sequence[RatedRow]) -> tuple[AnnotatorQuality, ...]:
    """Measure each person against the majority of the others who rated the same rows."""
    by_person: dict[str, list[tuple[Rating, list[int]]]] = defaultdict(list)
    for row in rows:
        for rating in row.people:
            peers = [peer.label for peer in _peers(row, rating)]
            by_person[rating.annotator].append((rating, peers))
    qualities = [_person_quality(ratings) for _, ratings in sorted(by_person.items())]
    typical = [quality.agrees for quality in qualities if quality.compared >= MIN_RATINGS]
    agreement = _median_or_nan(typical)
    seconds = _median_or_nan([quality.seconds for quality in qualities])
    results = []
    for quality in qualities:
        verdicts = Counter(rating.label for rating, _ in by_person[quality.annotator])
        is_low = quality.agrees < LOW_AGREEMENT_SHARE * agreement
        remarks = {
            "low agreement": quality.compared >= MIN_RATINGS and is_low,
            "fast": quality.seconds < FAST_SHARE * seconds,
            "one verdict": max(verdicts.values()) >= ONE_VERDICT_SHARE * quality.ratings,
        }
        if quality.ratings >= MIN_RATINGS:
            applying = (remark for remark, applies in remarks.items() if applies)
            quality = replace(quality, remarks=tuple(applying))
        results.append(quality)
    return tuple(results)


def _person_quality(ratings: Sequence[tuple[Rating, list[int]]]) -> AnnotatorQuality:
    """Measure the ratings of one person, each with the labels of the others."""
    agreed: list[bool] = []
    near: list[bool] = []
    offsets: list[float] = []
    for rating, peers in ratings:
        majority = plurality(peers)
        if majority is not None:
            agreed.append(rating.label == majority)
            both_apply = DOES_NOT_APPLY not in (rating.label, majority)
            near.append(agreed[-1] or (both_apply and abs(rating.label - majority) <= 1))
        labels = [label for label in peers if label != DOES_NOT_APPLY]
        if labels and rating.label != DOES_NOT_APPLY:
            offsets.append(rating.label - median(labels))
    return AnnotatorQuality(
        annotator=ratings[0][0].annotator,
        ratings=len(ratings),
        does_not_apply=fmean(rating.label == DOES_NOT_APPLY for rating, _ in ratings),
        compared=len(agreed),
        agrees=_mean_or_nan(agreed),
        within_one=_mean_or_nan(near),
        offset=_mean_or_nan(offsets),
        seconds=time_per_rating(rating for rating, _ in ratings).median,
    )


def _mean_or_nan(values: Sequence[float] | np.ndarray) -> float:
    return fmean(values) if len(values) else math.nan


def _median_or_nan(values: Iterable[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return float(median(numbers)) if numbers else math.nan
