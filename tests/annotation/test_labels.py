from __future__ import annotations

from dataclasses import replace

import pytest

from condsim.annotation.labels import LabelRules, collect_votes, decide_labels
from condsim.annotation.records import Condition, Rating, row_id_of
from condsim.errors import InputError

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
    assert len(decision.labelled) + len(decision.dropped) == 1
    return decision.labelled[0].label if decision.labelled else decision.dropped[0].reason


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


def test_decide_labels_invalid_share_moves_the_threshold():
    assert label_of([4, -1, -1], KEEP.replaced(invalid_share=0.7)) == 4
    for labels, share in (([4, 4, -1], 0.3), ([-1] * 7 + [4] * 18, 0.28)):
        rules = KEEP.replaced(invalid_share=share)
        assert label_of(labels, rules) == "the condition does not apply"


def test_decide_labels_too_few_ratings_are_dropped():
    assert label_of([4, 4], KEEP.replaced(min_ratings=3)) == "too few ratings"


def test_decide_labels_models_count_only_if_asked():
    rows = collect_votes(rate("p", "high", [5]) + rate("p", "high", [1, 1], origin="m"))
    assert decide_labels(rows, KEEP).labelled[0].label == 5
    (counted,) = decide_labels(rows, KEEP.replaced(count_models=True)).labelled
    assert (counted.label, counted.origin) == (1, "m")


def test_decide_labels_models_that_helped_people_are_origins():
    first, second, away = rate("p", "high", [5, 5, -1])
    votes = [
        replace(first, prefilled_by="m"),
        replace(second, condition_origin="llm"),
        replace(away, prefilled_by="n"),
    ]
    (labelled,) = decide_labels(collect_votes(votes), KEEP).labelled
    assert (labelled.label, labelled.origin) == (5, "llm, m")
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
    assert {one.pair_id for one in decision.labelled} == kept
    assert (decision.order.as_intended, decision.order.ties, decision.order.reversed) == (1, 1, 1)
    assert len(decision.labelled) + len(decision.dropped) == len(rows)


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


def test_unrated_conditions_are_listed():
    rows = collect_votes(pairs())
    written = [
        Condition("ordered", "One.", "Two.", "The high condition", "high", "a"),
        Condition("new", "One.", "Two.", "The price", "low", "a"),
    ]
    *_, dropped = decide_labels(rows, KEEP, conditions=written).dropped
    assert (dropped.pair_id, dropped.reason, dropped.detail) == ("new", "not rated", "low")


@pytest.mark.parametrize("wrong", [{"min_ratings": 0}, {"invalid_share": 0}, {"invalid_share": 2}])
def test_label_rules_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        LabelRules(**wrong)


def test_collect_votes_order_of_ratings_does_not_matter():
    ratings = rate("p", "high", [5, 4]) + rate("q", "low", [1, -1])
    assert collect_votes(ratings) == collect_votes(ratings[::-1])


def test_collect_votes_ratings_that_contradict_are_refused():
    first, second = rate("p", "high", [5, 3])
    with pytest.raises(InputError, match=r"two of the row .* by 'human-0' \(labels 5 and 5\)"):
        collect_votes([first, second, first])
    with pytest.raises(InputError, match="differ in 'sentence1'"):
        collect_votes([first, replace(second, sentence1="Another.")])
