from __future__ import annotations

import pytest

from condsim.annotation.exchange import pull, push
from condsim.annotation.outcome import decide_by_hand, score_test
from condsim.annotation.stages import Answer, qualification_items
from condsim.errors import InputError


@pytest.fixture
def test(store, server):
    """The test handed out; gives its items."""
    push(store, server, "qualification", qualification_items())
    return list(store.items("qualification").values())


def answer_all(server, test, account, answer_of):
    for stored in test:
        server.submit(stored.task, account, answer_of(stored.facts["label"]))


def test_score_test_good_and_bad_answers_make_the_pool(store, server, test):
    answer_all(server, test, 1, lambda label: Answer("The purpose of it", "The place", label))
    answer_all(server, test, 2, lambda label: Answer("The activity", "The color is red", label))
    answer_all(server, test, 3, lambda label: Answer("The purpose of it", "The place", 3))
    pull(store, server, "qualification")
    ann, bob, cleo = score_test(store)
    assert (ann.condition_score, ann.rating_score, ann.accepted) == (1, 1, True)
    assert (bob.condition_score, bob.rating_score, bob.accepted) == (0, 1, False)
    # Known 5, 1, -1, 2, 5, 1: 3 is within 1 of the fourth alone.
    assert (cleo.condition_score, cleo.accepted) == (1, False)
    assert cleo.rating_score == pytest.approx(1 / 6)
    assert [name for name, one in store.pool().items() if one.accepted] == ["ann"]


def test_score_test_unfinished_is_not_decided(store, server, test):
    answer_all(server, test[:5], 1, lambda label: Answer("The purpose of it", "The place", label))
    pull(store, server, "qualification")
    (ann,) = score_test(store)
    assert (ann.answered, ann.items, ann.accepted) == (5, 6, None)
    assert store.pool() == {}


def test_score_test_same_condition_twice_does_not_do(store, server, test):
    answer_all(server, test, 1, lambda label: Answer("The place", "the place", label))
    pull(store, server, "qualification")
    assert score_test(store)[0].condition_score == 0


def test_score_test_decision_by_hand_stands(store, server, test):
    answer_all(server, test, 1, lambda label: Answer("The activity", "The thing", 3))
    pull(store, server, "qualification")
    decide_by_hand(store, accept=["ANN"])
    assert score_test(store)[0].accepted is False
    assert store.pool()["ann"].accepted
    decide_by_hand(store, reject=["ann"])
    assert not store.pool()["ann"].accepted


def test_score_test_without_a_test_is_refused(store):
    with pytest.raises(InputError, match="There is no test to score"):
        score_test(store)


def test_score_test_bound_out_of_range_is_refused(store):
    with pytest.raises(InputError, match=r"'min_ratings' parameter must be in \[0, 1\]"):
        score_test(store, min_ratings=80)
