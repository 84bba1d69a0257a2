from __future__ import annotations

import numpy as np
import pytest
from papers.data.afs import cross_validation

from condsim.data.tasks import draw_folds
from condsim.errors import InputError
from condsim.types import Task


def make_task(count=25):
    first = [f"a {row}" for row in range(count)] + ["b 0", "x"]
    second = [f"b {row}" for row in range(count)] + ["a 0", "y"]  # one pair again, turned round
    labels = np.array([*range(count), 1, np.nan], np.float32)
    return Task("afs", "0", tuple(first), tuple(second), None, labels, (0.0, 30.0))


def pairs_of(task):
    return list(zip(task.sentences1, task.sentences2, strict=True))


def test_cross_validation_every_labelled_row_is_tested_once():
    folds = cross_validation(make_task(), folds=10, seed=3)
    assert len(folds) == 10
    tested = [pair for fold in folds for pair in pairs_of(fold.test)]
    assert sorted(tested) == sorted(pairs_of(make_task().labelled()))
    for train, test in folds:
        assert len(train) + len(test) == 26
        assert 2 <= len(test) <= 4
        assert not set(train.sentences1 + train.sentences2) & set(test.sentences1)


def test_cross_validation_seed_decides_and_order_does_not():
    task = make_task()
    turned = task.take(np.arange(len(task))[::-1])
    sets = [
        [set(fold.test.sentences1) for fold in cross_validation(of, folds=5, seed=seed)]
        for of, seed in ((task, 0), (turned, 0), (task, 1))
    ]
    assert sets[0] == sets[1]
    assert sets[0] != sets[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "1 folds; expected at least 2"),
        ({"folds": 26}, "26 folds; .* at most the 25 labelled sentence pairs"),
    ],
)
def test_cross_validation_bad_argument_raises(arguments, message):
    with pytest.raises(InputError, match=message):
        cross_validation(make_task(), **arguments)


def test_draw_folds_pair_in_both_orders_shares_one_and_others_stay():
    pairs = [(f"a {row}", f"b {row}") for row in range(40)]
    turned = [(two, one) for one, two in pairs[:20]]
    folds = draw_folds(pairs + turned, folds=10, seed=0)
    assert folds[40:].tolist() == folds[:20].tolist()
    same = pairs + [
        (f"c {row}", f"d {row}") for row in range(20)
    ]  # by the alphabet where those are
    assert folds[:40].tolist() == draw_folds(same, folds=10, seed=0)[:40].tolist()
