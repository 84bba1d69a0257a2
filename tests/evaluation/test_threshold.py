from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.threshold import find_threshold, learned_threshold, threshold_table


def test_find_threshold_perfect_scores_take_in_every_positive_row():
    scores = np.linspace(0, 1, 1000)
    found = find_threshold(scores, scores >= 0.5, precision=0.9)
    # Below the 500 positive rows come negative ones, of which the promise leaves room for some.
    assert found.recall == 1.0
    assert (found.rows, found.positives) == (1000, 500)
    assert found.reached == np.count_nonzero(scores >= found.value)
    assert found.precision == pytest.approx(500 / found.reached)
    assert 0.9 <= found.low < found.precision < found.high


def test_find_threshold_fewest_rows_are_those_of_the_bets_by_hand():
    # All n rows positive: the bets win the mean of ((1 - share / 2) / 0.5) ** n over the shares
    # 0, 1/32 ... 31/32, and must win 40-fold.
    won = [np.mean((2 - np.arange(32) / 32) ** n) for n in range(30)]
    least = next(n for n in range(30) if won[n] >= 40)
    find_threshold(np.arange(least) / 100, np.ones(least, bool), precision=0.5)
    with pytest.raises(InputError, match=f"takes at least {least} positive ones"):
        find_threshold(np.arange(least - 1) / 100, np.ones(least - 1, bool), precision=0.5)


def test_find_threshold_equal_scores_come_in_together():
    scores = np.repeat([0.9, 0.4], 200)
    positive = np.arange(400) < 200
    positive[100] = False
    assert find_threshold(scores, positive, precision=0.8).reached == 200


def test_find_threshold_promise_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(100):
        positive = rng.random(400) < 0.9  # whatever the threshold, no more than 90 % are
        try:
            find_threshold(rng.random(400), positive, precision=0.9)
        except InputError:
            continue
        broken += 1
    assert broken <= 6  # 2.5 are expected at most


def test_find_threshold_few_rows_says_how_many_more():
    scores = np.linspace(0, 1, 120)
    positive = scores > 0.05
    positive[[60, 80, 100]] = False
    with pytest.raises(InputError, match=r"Too few labeled rows: \d+ times as many like these"):
        find_threshold(scores, positive, precision=0.95)


def test_find_threshold_few_right_rows_at_the_top_are_too_few_and_not_too_poor():
    scores = np.linspace(1, 0, 400)
    positive = np.arange(400) % 2 == 0
    positive[:20] = True
    with pytest.raises(InputError, match=r"nearest, 0\.9\d+, has 1\.000 .* 4 times as many like"):
        find_threshold(scores, positive, precision=0.9)


def test_threshold_table_has_steps_and_the_best_f1():
    scores = np.linspace(0, 1, 401)
    table = threshold_table(scores, scores > 0.42)
    assert [row.value for row in table] == sorted((row.value for row in table), reverse=True)
    best = max(table, key=lambda row: row.f1)
    assert (best.value, best.f1) == (pytest.approx(0.4225), 1)
    row = next(row for row in table if row.value == 0.4)
    assert (row.precision, row.recall) == (pytest.approx(232 / 241), 1)
    assert row.low < row.precision < row.high


def test_find_threshold_useless_scores_say_so():
    positive = np.arange(2000) % 2 == 0
    with pytest.raises(InputError, match="do not separate the rows"):
        find_threshold(np.linspace(0, 1, 2000), positive, precision=0.9)


@pytest.mark.parametrize(
    ("scores", "positive", "precision", "message"),
    [
        ([0.5], [True], 1.0, "above 0 and below 1"),
        ([0.5, 0.6], [True], 0.9, r"shapes \(2,\) and \(1,\)"),
        ([np.nan], [True], 0.9, "finite"),
        ([0.5], [False], 0.9, "at least one positive"),
    ],
)
def test_find_threshold_bad_input_is_refused(scores, positive, precision, message):
    with pytest.raises(InputError, match=message):
        find_threshold(scores, positive, precision=precision)


def test_find_threshold_pairs_that_share_texts_count_less():
    scores, positive = np.linspace(1, 0.5, 190), np.ones(190, bool)
    disjoint = np.arange(380).reshape(-1, 2)
    alone = find_threshold(scores, positive, precision=0.9)
    assert find_threshold(scores, positive, precision=0.9, texts=disjoint) == alone
    # All pairs of 20 texts are worth 10 disjoint ones, or somewhat less.
    first, second = np.triu_indices(20, 1)
    with pytest.raises(InputError, match="No threshold keeps"):
        find_threshold(scores, positive, precision=0.9, texts=np.stack([first, second], 1))


def test_find_threshold_pairs_of_one_text_worked_by_hand():
    # With a promise of 0.01, one right row wins the bets. Two of one text count 2 / 3 of a row.
    scores, positive = np.array([0.9, 0.8]), np.ones(2, bool)
    for other, reached in ((0, 1), (3, 2)):
        texts = np.array([[0, 1], [2, other]])
        assert find_threshold(scores, positive, precision=0.01, texts=texts).reached == reached


def test_learned_threshold_of_a_file_raises(tmp_path):
    import condsim

    model = condsim.load()
    things = ["car", "bus", "van", "bike", "boat"]
    texts = [f"a {color} {thing}" for color in ("red", "blue") for thing in things]
    criterion = model.learn(texts, ["red"] * 5 + ["blue"] * 5, condition="the color")
    threshold, line = learned_threshold(criterion)
    assert threshold is None
    assert line == "10 labels are too few to promise a threshold: even 70 in 100 takes about 38."
    criterion.save(tmp_path / "color.criterion")
    with pytest.raises(InputError, match="read from a file"):
        learned_threshold(condsim.load_criterion(tmp_path / "color.criterion"))
