from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.io import finite_values
from condsim_annotation.agreement import (
    annotator_quality,
    fleiss_kappa,
    krippendorff_alpha,
    measure_agreement,
    model_agreement,
    one_person_agreement,
    report_ratings,
    time_per_rating,
)
from condsim_annotation.records import (
    LabelRules,
    Rating,
    collect_votes,
    decide_labels,
    row_id_of,
)


def rating(
    row: int, annotator: str, label: int, *, seconds=20.0, origin="human", prefilled_by=""
) -> Rating:
    return Rating(
        f"r{row}", f"p{row}", f"One {row}.", f"Two {row}.", "The color", "high", annotator, label,
        seconds=seconds, origin=origin, prefilled_by=prefilled_by,
    )  # fmt: skip


def rate_rows(*labels: tuple[int, ...]) -> list[Rating]:
    """Ratings of rows by the annotators a, b, c, d in order."""
    ratings = []
    for row, row_labels in enumerate(labels):
        ratings += [rating(row, "abcd"[index], label) for index, label in enumerate(row_labels)]
    return ratings


def test_fleiss_kappa_small_table_worked_by_hand():
    # Four rows of three ratings: aab, aaa, bbb, abb.
    # P_i = (sum of squares - 3) / 6 = (5-3)/6, (9-3)/6, (9-3)/6, (5-3)/6 = 1/3, 1, 1, 1/3
    # P = 2/3; shares 6/12 and 6/12, so P_e = 1/2; kappa = (2/3 - 1/2) / (1 - 1/2) = 1/3
    kappa = fleiss_kappa([[2, 1], [3, 0], [0, 3], [1, 2]])
    assert kappa.value == pytest.approx(1 / 3)
    assert (kappa.raters, kappa.rows, kappa.left_out) == (3, 4, 0)
    uneven = fleiss_kappa([[2, 1], [3, 0], [0, 3], [1, 2], [1, 1], [5, 0], [1, 0]])
    assert uneven == replace(kappa, left_out=3)


@pytest.mark.parametrize("table", [[[1, 0], [0, 1]], [[3, 0], [3, 0]], np.zeros((0, 5))])
def test_agreement_without_chance_is_nan(table):
    assert math.isnan(fleiss_kappa(table).value)
    assert math.isnan(krippendorff_alpha(table))


def test_krippendorff_alpha_small_table_worked_by_hand():
    # Rows {1, 1}, {1, 2}, {3, 3}; labels 1, 2, 3 occur n = 3, 1, 2 times, 6 in all.
    # Ordinal distances, ((n_c + ... + n_k) - (n_c + n_k) / 2)^2:
    #   1-2: (4 - 2)^2 = 4     1-3: (6 - 2.5)^2 = 12.25     2-3: (3 - 1.5)^2 = 2.25
    # Observed: one pair 1-2, 1 * 4. Expected: 3*1*4 + 3*2*12.25 + 1*2*2.25 = 90
    # alpha = 1 - (6 - 1) * 4 / 90
    table = [[2, 0, 0], [1, 1, 0], [0, 0, 2]]
    assert krippendorff_alpha(table) == pytest.approx(1 - 20 / 90)
    # Nominal: 1 - 5 * 1 / (3*1 + 3*2 + 1*2)
    assert krippendorff_alpha(table, distance="nominal") == pytest.approx(1 - 5 / 11)


def test_krippendorff_alpha_published_example_has_the_value_of_the_paper():
    # Krippendorff (2011), D: four coders, twelve units, five values, some missing: 0.815.
    nan = math.nan
    coders = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
    counts = [
        [sum(coder[unit] == v for coder in coders) for v in range(1, 6)] for unit in range(12)
    ]
    assert krippendorff_alpha(counts) == pytest.approx(0.815, abs=5e-4)


def test_measure_agreement_small_file_worked_by_hand():
    rows = collect_votes(rate_rows((5, 5, 4), (1, 1, 1), (2, -1, 3), (3, 3)))
    agreement = measure_agreement(rows)
    assert (agreement.rows, agreement.ratings, agreement.annotators) == (4, 11, 3)
    assert agreement.does_not_apply == 1
    assert agreement.ratings_per_row == ((2, 1), (3, 3))
    # Pairs of labels: 554 has 1 equal of 3, 111 has 3 of 3, 2-3 none of 1, 33 one of 1.
    assert agreement.exact == pytest.approx(5 / 8)
    assert agreement.within_one == pytest.approx(1.0)
    # Two rows have three labels, two have two: of equally common numbers the larger is taken.
    assert (agreement.kappa.raters, agreement.kappa.rows, agreement.kappa.left_out) == (3, 2, 2)
    # 554 and 111: P = (1/3 + 1) / 2 = 2/3; P_e = (3^2 + 1^2 + 2^2) / 36 = 14/36
    assert agreement.kappa.value == pytest.approx((2 / 3 - 14 / 36) / (1 - 14 / 36))
    assert agreement.kappa_verdicts.rows == 3
    assert agreement.alpha_rows == 4


def test_annotator_quality_compares_with_the_majority_of_the_others():
    rows = collect_votes(rate_rows((5, 5, 1), (2, 2, 3), (-1, -1, 4)))
    a, _, c = annotator_quality(rows)
    # The others of c agree three times (5 5, 2 2, -1 -1); those of a never do.
    assert (c.compared, c.agrees) == (3, 0)
    assert c.within_one == pytest.approx(1 / 3)
    assert c.offset == pytest.approx((-4 + 1) / 2)
    assert (a.compared, math.isnan(a.agrees)) == (0, True)
    assert a.does_not_apply == pytest.approx(1 / 3)
    assert a.seconds == 20


def test_annotator_quality_poor_work_gets_remarks():
    generator = np.random.default_rng(0)
    ratings = []
    for row, label in enumerate(generator.integers(1, 6, size=60).tolist()):
        ratings += [rating(row, name, label) for name in ("ann", "ben", "eve")]
        ratings.append(rating(row, "joe", 3, seconds=2.0))
    remarks = {row.annotator: row.remarks for row in annotator_quality(collect_votes(ratings))}
    poor = ("low agreement", "fast", "one verdict")
    assert remarks == {"ann": (), "ben": (), "eve": (), "joe": poor}


def test_time_per_rating_ignores_unknown_times():
    times = time_per_rating(rating(row, "a", 3, seconds=row or None) for row in range(12))
    assert (times.known, times.median, times.tenth, times.ninetieth) == (11, 6, 2, 10)
    assert times.hours == pytest.approx(66 / 3600)
    assert math.isnan(time_per_rating([]).median)


def test_model_agreement_is_with_the_median_of_people():
    ratings = rate_rows((5, 5, 4), (1, 2, 1), (3, 3, 3), (-1, -1, 2))
    ratings += [rating(row, "m", label, origin="m-1") for row, label in enumerate((5, 2, 4, -1))]
    (model,) = model_agreement(collect_votes(ratings))
    assert (model.rater, model.rows, model.compared) == ("m-1", 4, 3)
    assert (model.exact, model.within_one, model.applies) == (pytest.approx(1 / 3), 1.0, 1.0)
    assert model.offset == pytest.approx(2 / 3)
    assert model.spearman == pytest.approx(100)
    # Rows {5, 5}, {1, 2}, {3, 4}: n = 1, 1, 1, 1, 2; ordinal distances by their definition.
    n = np.array([1, 1, 1, 1, 2])
    apart = [[(n[i : j + 1].sum() - (n[i] + n[j]) / 2) ** 2 for j in range(5)] for i in range(5)]
    expected = sum(n[i] * n[j] * apart[i][j] for i in range(5) for j in range(i + 1, 5))
    assert model.alpha == pytest.approx(1 - 5 * (apart[0][1] + apart[2][3]) / expected)


def test_model_agreement_separates_people_who_saw_its_rating():
    labels = (5, 2, 4)
    ratings = [rating(row, "m", label, origin="m") for row, label in enumerate(labels)]
    ratings += [rating(row, "a", label, prefilled_by="m") for row, label in enumerate(labels)]
    assert [row.rater for row in model_agreement(collect_votes(ratings))] == ["m"]
    ratings += [rating(row, "b", label) for row, label in enumerate((5, 4))]
    all_people, not_shown = model_agreement(collect_votes(ratings))
    assert (all_people.rater, all_people.rows, all_people.shown) == ("m", 3, 3)
    # Medians 5, 3, 4 against 5, 2, 4.
    assert all_people.offset == pytest.approx(-1 / 3)
    assert (not_shown.rater, not_shown.rows, not_shown.shown) == ("m, not shown", 2, 0)
    assert (not_shown.exact, not_shown.offset) == (0.5, -1)


def test_one_person_agreement_counts_the_rows_of_the_model():
    ratings = [rating(row, name, 1 + row) for row in range(4) for name in "ab"]
    report = report_ratings(collect_votes(ratings))
    assert report.models == ()
    assert report.one_person.rows == 8
    assert finite_values(report)["agreement"]["kappa"]["value"] == pytest.approx(1)
    rows = collect_votes([*ratings, rating(0, "m", 1, origin="m")])
    assert one_person_agreement([row for row in rows if row.models]).rows == 2
    assert one_person_agreement(collect_votes([ratings[0]])) is None


KEEP = LabelRules(keep_lone=True)


def rate(pair: str, intended: str, labels: list[int], *, origin: str = "human") -> list[Rating]:
    condition = f"The {intended} condition"
    return [
        Rating(row_id_of(pair, condition), pair, "One.", "Two.", condition, intended,
               f"{origin}-{number}", label, origin=origin)
        for number, label in enumerate(labels)
    ]  # fmt: skip


def label_of(labels: list[int], rules: LabelRules = KEEP) -> float | str:
    decision = decide_labels(collect_votes(rate("p", "high", labels)), rules)
    assert len(decision.labeled) + len(decision.dropped) == 1
    return decision.labeled[0].label if decision.labeled else decision.dropped[0].reason


@pytest.mark.parametrize(
    ("labels", "median", "majority"),
    [
        ([4], 4, 4),
        ([5, 4, 1], 4, "no majority"),
        ([5, 5, 1], 5, 5),
        ([2, 3], 2.5, "no majority"),
        ([1, 4, -1], 2.5, "no majority"),
        ([1, -1], "the condition does not apply", "the condition does not apply"),
        ([-1, -1, 5], "the condition does not apply", "the condition does not apply"),
    ],
)
def test_decide_labels_votes_give_the_expected_label(labels, median, majority):
    assert label_of(labels) == median
    assert label_of(labels, KEEP.replaced(how="majority")) == majority


def test_decide_labels_share_and_number_of_ratings_are_options():
    assert label_of([4, 4], KEEP.replaced(min_ratings=3)) == "too few ratings"
    assert label_of([4, -1, -1], KEEP.replaced(invalid_share=0.7)) == 4
    for labels, share in (([4, 4, -1], 0.3), ([-1] * 7 + [4] * 18, 0.28)):
        rules = KEEP.replaced(invalid_share=share)
        assert label_of(labels, rules) == "the condition does not apply"


def test_decide_labels_models_count_only_if_asked():
    rows = collect_votes(rate("p", "high", [5]) + rate("p", "high", [1, 1], origin="m"))
    assert decide_labels(rows, KEEP).labeled[0].label == 5
    (counted,) = decide_labels(rows, KEEP.replaced(count_models=True)).labeled
    assert (counted.label, counted.origin) == (1, "m")


def test_decide_labels_models_that_helped_people_are_origins():
    first, second, away = rate("p", "high", [5, 5, -1])
    votes = [
        replace(first, prefilled_by="m"),
        replace(second, condition_origin="llm"),
        replace(away, prefilled_by="n"),
    ]
    (labeled,) = decide_labels(collect_votes(votes), KEEP).labeled
    assert (labeled.label, labeled.origin) == (5, "llm, m")
    only_models = collect_votes(rate("p", "high", [1], origin="m"))
    assert decide_labels(only_models, KEEP).dropped[0].reason == "too few ratings"


def pairs() -> list[Rating]:
    """One pair as meant, one alike, one reversed, one that loses a row."""
    return [
        *rate("ordered", "high", [5]), *rate("ordered", "low", [1]),
        *rate("alike", "high", [3]), *rate("alike", "low", [3]),
        *rate("reversed", "high", [1]), *rate("reversed", "low", [5]),
        *rate("broken", "high", [-1]), *rate("broken", "low", [2]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        ("report", {"ordered", "alike", "reversed"}),
        ("drop-reversed", {"ordered", "alike"}),
        ("drop-unordered", {"ordered"}),
    ],
)
def test_decide_labels_order_of_conditions_is_checked(order, kept):
    rows = collect_votes(pairs())
    decision = decide_labels(rows, LabelRules(order=order))
    assert {one.pair_id for one in decision.labeled} == kept
    assert (decision.order.as_intended, decision.order.ties, decision.order.reversed) == (1, 1, 1)
    assert len(decision.labeled) + len(decision.dropped) == len(rows)


def test_decide_labels_every_dropped_row_has_its_reason():
    decision = decide_labels(collect_votes(pairs()), LabelRules(order="drop-reversed"))
    assert sorted((one.pair_id, one.reason, one.detail) for one in decision.dropped) == [
        ("broken", "the condition does not apply", "ratings -1"),
        ("broken", "the other row of the pair was dropped", "label 2"),
        *[("reversed", "the high condition is rated lower than the low one",
           "C-high 1, C-low 5")] * 2,
    ]  # fmt: skip


def test_decide_labels_condition_written_for_both_is_dropped():
    high = rate("p", "high", [4])[0]
    rows = collect_votes([high, replace(high, intended="low", annotator="other")])
    assert decide_labels(rows, KEEP).dropped[0].reason == "one condition is both high and low"


def test_collect_votes_ratings_that_contradict_are_refused():
    first, second = rate("p", "high", [5, 3])
    with pytest.raises(InputError, match=r"two of the row .* by 'human-0' \(labels 5 and 5\)"):
        collect_votes([first, second, first])
    with pytest.raises(InputError, match="differ in 'sentence1'"):
        collect_votes([first, replace(second, sentence1="Another.")])
