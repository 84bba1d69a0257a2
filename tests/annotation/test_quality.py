from __future__ import annotations

import math

import numpy as np
import pytest

from condsim.annotation.agreement import (
    annotator_quality,
    model_agreement,
    one_person_agreement,
    report_ratings,
    time_per_rating,
)
from condsim.annotation.labels import collect_votes
from condsim.rows.records import Rating, plain_values


def rating(
    row: int, annotator: str, label: int, *, seconds=20.0, origin="human", prefilled_by=""
) -> Rating:
    return Rating(
        f"r{row}", f"p{row}", f"One {row}.", f"Two {row}.", "The color", "high", annotator, label,
        seconds=seconds, origin=origin, prefilled_by=prefilled_by,
    )  # fmt: skip


def test_annotator_quality_majority_is_that_of_the_others():
    rows = collect_votes(
        [
            *[rating(0, name, label) for name, label in zip("abc", (5, 5, 1), strict=True)],
            *[rating(1, name, label) for name, label in zip("abc", (2, 2, 3), strict=True)],
            *[rating(2, name, label) for name, label in zip("abc", (-1, -1, 4), strict=True)],
        ]
    )
    one = {quality.annotator: quality for quality in annotator_quality(rows)}
    # The others of c agree three times (5 5, 2 2, -1 -1); those of a never do.
    assert (one["c"].compared, one["c"].agrees) == (3, 0)
    assert one["c"].within_one == pytest.approx(1 / 3)
    assert one["c"].offset == pytest.approx((-4 + 1) / 2)
    assert (one["a"].compared, math.isnan(one["a"].agrees)) == (0, True)
    assert one["a"].does_not_apply == pytest.approx(1 / 3)
    assert one["a"].seconds == 20


def test_annotator_quality_poor_work_gets_remarks():
    generator = np.random.default_rng(0)
    ratings = []
    for row, label in enumerate(generator.integers(1, 6, size=60).tolist()):
        ratings += [rating(row, name, label) for name in ("ann", "ben", "eve")]
        ratings.append(rating(row, "joe", 3, seconds=2.0))
    remarks = {one.annotator: one.remarks for one in annotator_quality(collect_votes(ratings))}
    assert remarks == {
        "ann": (), "ben": (), "eve": (), "joe": ("low agreement", "fast", "one verdict"),
    }  # fmt: skip


def test_time_per_rating_unknown_times_are_left_out():
    times = time_per_rating(rating(row, "a", 3, seconds=row or None) for row in range(12))
    assert (times.known, times.median, times.tenth, times.ninetieth) == (11, 6, 2, 10)
    assert times.hours == pytest.approx(66 / 3600)
    assert math.isnan(time_per_rating([]).median)


def test_model_agreement_is_against_the_median_of_people():
    people = [(5, 5, 4), (1, 2, 1), (3, 3, 3), (-1, -1, 2)]
    model = (5, 2, 4, -1)
    ratings = [
        rating(row, name, label)
        for row, labels in enumerate(people)
        for name, label in zip("abc", labels, strict=True)
    ]
    ratings += [rating(row, "m", label, origin="m-1") for row, label in enumerate(model)]
    (one,) = model_agreement(collect_votes(ratings))
    assert (one.rater, one.rows, one.compared) == ("m-1", 4, 3)
    assert (one.exact, one.within_one, one.applies) == (pytest.approx(1 / 3), 1.0, 1.0)
    assert one.offset == pytest.approx(2 / 3)
    assert one.spearman == pytest.approx(100)
    # Rows {5, 5}, {1, 2}, {3, 4}: n = 1, 1, 1, 1, 2; ordinal distances by their definition.
    n = np.array([1, 1, 1, 1, 2])
    apart = [[(n[i : j + 1].sum() - (n[i] + n[j]) / 2) ** 2 for j in range(5)] for i in range(5)]
    expected = sum(n[i] * n[j] * apart[i][j] for i in range(5) for j in range(i + 1, 5))
    assert one.alpha == pytest.approx(1 - 5 * (apart[0][1] + apart[2][3]) / expected)


def test_model_agreement_people_who_saw_its_rating_are_told_apart():
    model = (5, 2, 4)
    ratings = [rating(row, "m", label, origin="m") for row, label in enumerate(model)]
    ratings += [rating(row, "a", label, prefilled_by="m") for row, label in enumerate(model)]
    ratings += [rating(row, "b", label) for row, label in enumerate((5, 4))]
    all_people, not_shown = model_agreement(collect_votes(ratings))
    assert (all_people.rater, all_people.rows, all_people.shown) == ("m", 3, 3)
    # Medians 5, 3, 4 against 5, 2, 4.
    assert all_people.offset == pytest.approx(-1 / 3)
    assert (not_shown.rater, not_shown.rows, not_shown.shown) == ("m, not shown", 2, 0)
    assert (not_shown.exact, not_shown.offset) == (0.5, -1)


def test_model_agreement_everyone_saw_its_rating_has_one_row():
    ratings = [rating(0, "m", 5, origin="m"), rating(0, "a", 4, prefilled_by="m")]
    assert [one.rater for one in model_agreement(collect_votes(ratings))] == ["m"]


def test_one_person_agreement_counts_the_rows_of_the_model():
    ratings = [rating(row, name, 1 + row) for row in range(4) for name in "ab"]
    ratings.append(rating(0, "m", 1, origin="m"))
    rows = collect_votes(ratings)
    assert one_person_agreement(rows, beside_models=True).rows == 2
    assert one_person_agreement(rows, beside_models=False).rows == 8
    assert one_person_agreement(collect_votes([rating(0, "a", 1)]), beside_models=False) is None


def test_report_ratings_of_people_alone_has_no_models():
    ratings = [rating(row, name, 1 + row) for row in range(4) for name in "ab"]
    report = report_ratings(collect_votes(ratings))
    assert report.models == ()
    assert plain_values(report)["agreement"]["kappa"]["value"] == pytest.approx(1)
