from __future__ import annotations

import math

import numpy as np
import pytest

from condsim.annotation.agreement import fleiss_kappa, krippendorff_alpha, measure_agreement
from condsim.annotation.labels import collect_votes
from condsim.errors import InputError
from condsim.rows.records import Rating


def ratings_of(labels: dict[str, list[int]], *, origin: str = "human") -> list[Rating]:
    """Ratings from the labels of each row, in the order of annotators a, b, c ..."""
    return [
        Rating(
            f"{pair}-1", pair, f"One {pair}.", f"Two {pair}.", "The color", "high", annotator,
            label, seconds=10.0, origin=origin,
        )
        for pair, given in labels.items()
        for annotator, label in zip("abcdefgh", given, strict=False)
    ]  # fmt: skip


def test_fleiss_kappa_small_table_is_that_worked_by_hand():
    # Four rows of three ratings: aab, aaa, bbb, abb.
    # P_i = (sum of squares - 3) / 6 = (5-3)/6, (9-3)/6, (9-3)/6, (5-3)/6 = 1/3, 1, 1, 1/3
    # P = 2/3; shares 6/12 and 6/12, so P_e = 1/2; kappa = (2/3 - 1/2) / (1 - 1/2) = 1/3
    kappa = fleiss_kappa([[2, 1], [3, 0], [0, 3], [1, 2]])
    assert kappa.value == pytest.approx(1 / 3)
    assert (kappa.raters, kappa.rows, kappa.left_out) == (3, 4, 0)


def test_fleiss_kappa_textbook_table_is_that_of_the_textbook():
    # Ten rows, fourteen raters, five categories: P = 0.378, P_e = 0.213, kappa = 0.210.
    table = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(table).value == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_uneven_ratings_counts_the_commonest_number():
    kappa = fleiss_kappa([[2, 1], [3, 0], [0, 3], [1, 2], [1, 1], [5, 0], [1, 0]])
    assert kappa.value == pytest.approx(1 / 3)
    assert (kappa.raters, kappa.rows, kappa.left_out) == (3, 4, 3)


@pytest.mark.parametrize("table", [[[1, 0], [0, 1]], [[3, 0], [3, 0]], np.zeros((0, 5))])
def test_agreement_without_chance_is_nan(table):
    assert math.isnan(fleiss_kappa(table).value)
    assert math.isnan(krippendorff_alpha(table))


def test_krippendorff_alpha_small_table_is_that_worked_by_hand():
    # Rows {1, 1}, {1, 2}, {3, 3}; labels 1, 2, 3 occur n = 3, 1, 2 times, 6 in all.
    # Ordinal distances, ((n_c + ... + n_k) - (n_c + n_k) / 2)^2:
    #   1-2: (4 - 2)^2 = 4     1-3: (6 - 2.5)^2 = 12.25     2-3: (3 - 1.5)^2 = 2.25
    # Observed: one pair 1-2, 1 * 4. Expected: 3*1*4 + 3*2*12.25 + 1*2*2.25 = 90
    # alpha = 1 - (6 - 1) * 4 / 90
    assert krippendorff_alpha([[2, 0, 0], [1, 1, 0], [0, 0, 2]]) == pytest.approx(1 - 20 / 90)
    # Nominal: 1 - 5 * 1 / (3*1 + 3*2 + 1*2)
    nominal = krippendorff_alpha([[2, 0, 0], [1, 1, 0], [0, 0, 2]], distance="nominal")
    assert nominal == pytest.approx(1 - 5 / 11)


def test_krippendorff_alpha_published_example_is_that_of_the_paper():
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


def test_measure_agreement_small_file_is_that_worked_by_hand():
    rows = collect_votes(
        ratings_of({"p1": [5, 5, 4], "p2": [1, 1, 1], "p3": [2, -1, 3], "p4": [3, 3]})
    )
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


def test_measure_agreement_models_take_no_part():
    people = ratings_of({"p1": [5, 4], "p2": [1, 1], "p3": [2, 3]})
    model = [
        Rating(one.row_id, one.pair_id, one.sentence1, one.sentence2, one.condition, "high", "m", 1,
               origin="m")
        for one in people if one.annotator == "a"
    ]  # fmt: skip
    assert measure_agreement(collect_votes(people + model)) == measure_agreement(
        collect_votes(people)
    )
    with pytest.raises(InputError, match="none of the ratings has the origin 'human'"):
        measure_agreement(collect_votes(model))


def test_collect_votes_two_people_under_one_name_is_refused():
    ratings = ratings_of({"p1": [5, 4]})
    with pytest.raises(InputError, match=r"Got two of the row p1-1 by 'a' \(labels 5 and 5\)"):
        collect_votes([*ratings, ratings[0]])


def test_collect_votes_different_texts_of_a_row_are_refused():
    (first,) = ratings_of({"p1": [5]})
    second = Rating("p1-1", "p1", "Other.", "Two p1.", "The color", "high", "b", 3)
    with pytest.raises(InputError, match="differ in 'sentence1'"):
        collect_votes([first, second])


def test_collect_votes_order_of_ratings_does_not_matter():
    ratings = ratings_of({"p1": [5, 4], "p2": [1, -1]})
    assert collect_votes(ratings) == collect_votes(ratings[::-1])
