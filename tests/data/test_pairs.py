from __future__ import annotations

import logging
import random

import numpy as np

from condsim.data.csts import load_csts
from condsim.data.tasks import pair_rows
from condsim.types import Task

ROWS = [  # sentence1, sentence2, condition, label
    ("A", "B", "low", 2.0),  # 0
    ("C", "D", "high", 4.0),  # 1
    ("A", "B", "high", 5.0),  # 2
    ("C", "D", "low", 1.0),  # 3
    ("E", "F", "tie1", 3.0),  # 4
    ("E", "F", "tie2", 3.0),  # 5
    ("G", "H", "lone", 3.0),  # 6
    ("I", "J", "known", 3.0),  # 7
    ("I", "J", "unknown", np.nan),  # 8
    ("B", "A", "swapped", 1.0),  # 9
    ("K", "L", "x", 1.0),  # 10
    ("K", "L", "y", 3.0),  # 11
    ("K", "L", "z", 3.0),  # 12
    ("K", "L", "w", 5.0),  # 13
]


def task_of(rows):
    sentences1, sentences2, conditions, labels = zip(*rows, strict=True)
    return Task(
        "t", "0" * 12, sentences1, sentences2, conditions, np.array(labels, np.float32), (1, 5)
    )


def pairs_of(rows):
    pairing = pair_rows(task_of(rows))
    return [(rows[i], rows[j]) for i, j in zip(pairing.high, pairing.low, strict=True)]


def test_pair_rows_label_decides_not_order():
    pairing = pair_rows(task_of(ROWS[:4]))
    assert list(zip(pairing.high, pairing.low, strict=True)) == [(2, 0), (1, 3)]
    assert pairing.pair_ids.tolist() == [0, 1, 0, 1]
    assert pairing.pairs == 2


def test_pair_rows_counts_every_kind():
    pairing = pair_rows(task_of(ROWS))
    # K-L: of 6 combinations of 1, 3, 3, 5 one is a tie. E-F is the other tie.
    assert pairing.pairs == 2 + 5
    assert pairing.ties == 2
    assert pairing.lone_rows == 3  # G-H, I-J (its partner has no label), B-A
    assert pairing.unlabelled_rows == 1
    assert pairing.larger_groups == 1


def test_pair_rows_ids_shared_within_pair_and_minus_one_unlabelled():
    ids = pair_rows(task_of(ROWS)).pair_ids
    assert ids.dtype == np.int64
    assert ids[8] == -1
    assert ids[0] == ids[2] != ids[9]
    assert len(set(ids[10:14].tolist())) == 1
    assert set(ids[ids >= 0].tolist()) == set(range(7))


def test_pair_rows_shuffled_rows_same_pairs():
    order = list(range(len(ROWS)))
    random.Random(0).shuffle(order)
    shuffled = [ROWS[index] for index in order]
    assert pairs_of(shuffled) == pairs_of(ROWS)
    before, after = pair_rows(task_of(ROWS)).pair_ids, pair_rows(task_of(shuffled)).pair_ids
    np.testing.assert_array_equal(after, before[order])


def test_pair_rows_brute_force_agrees():
    rng = random.Random(0)
    rows = [
        (rng.choice("AB"), rng.choice("CD"), str(i), rng.choice([1.0, 2.0, 3.0, np.nan]))
        for i in range(40)
    ]
    expected = {
        (i, j)
        for i, a in enumerate(rows)
        for j, b in enumerate(rows)
        if a[:2] == b[:2] and a[3] > b[3]
    }
    pairing = pair_rows(task_of(rows))
    found = list(zip(pairing.high.tolist(), pairing.low.tolist(), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected


def test_pair_rows_unlabelled_task_no_pairs():
    pairing = pair_rows(task_of([("A", "B", "c", np.nan)] * 2))
    assert pairing.pairs == 0
    assert pairing.high.dtype == pairing.low.dtype == np.int64
    assert pairing.unlabelled_rows == 2


def test_pair_rows_stray_space_in_file_still_paired(write_csts):
    pairing = pair_rows(load_csts(write_csts("A cat ,A dog,x,2\nA cat, A dog,y,4\n")))
    assert (pairing.high.tolist(), pairing.low.tolist()) == ([1], [0])


def test_pair_rows_counts_logged_if_there_are_conditions(caplog):
    task = Task("t", "0" * 12, ("A", "A"), ("B", "B"), None, np.array([1, 3], np.float32), (0, 5))
    with caplog.at_level(logging.INFO, logger="condsim"):
        pair_rows(task_of(ROWS))
        assert pair_rows(task).high.tolist() == [1]
    assert caplog.messages == [
        "t: 7 high-low pairs, 2 ties, 3 lone rows, 1 unlabeled rows, 1 larger groups"
    ]


def test_pair_rows_released_files_counts(released):
    train = pair_rows(load_csts(released / "train.csv"))
    assert train.pairs + train.ties == 5671
    # "the first row of a pair has a label >= the second in 4837 of 5671"
    assert int((train.high < train.low).sum()) + train.ties == 4837
    assert np.bincount(train.pair_ids).tolist() == [2] * 5671
    dev = pair_rows(load_csts(released / "dev.csv"))
    assert dev.unlabelled_rows == 168
    assert 2 * (dev.pairs + dev.ties) + dev.lone_rows == 1814
