from __future__ import annotations

import logging
import random

import numpy as np
import pytest

from condsim.data.csts import load_csts
from condsim.data.tasks import describe, pair_rows
from condsim.errors import InputError
from condsim.types import Task

CSTS = (
    "A cat sits.,A dog runs.,The animal,5\n"
    "A cat sits.,A dog runs.,the animal,2\n"
    "One,Two words,sport,1\n"
    "One,Two words,sport,2.3\n"
    "Three,Four,the animal,4\n"
    "Three,Four,color,4\n"
    "Five,Six,color,-1\n"
)


def test_describe_worked_by_hand(write_csts):
    statistics = describe(load_csts(write_csts(CSTS)), top=2)
    assert (statistics.rows, statistics.labeled_rows, statistics.unlabeled_rows) == (7, 6, 1)
    assert statistics.sentence_pairs == 4
    assert (statistics.high_low_pairs, statistics.ties, statistics.lone_rows) == (2, 1, 0)
    assert statistics.unique_sentences == 8
    assert statistics.label_histogram == ((1.0, 1), (2.0, 1), (2.3, 1), (4.0, 2), (5.0, 1))
    # Sentences: 4 of 3 words, 2 of 1 and 2 of 2, then 6 of 1.
    assert statistics.sentence_words.mean == pytest.approx((12 + 2 + 4 + 6) / 14)
    assert statistics.sentence_words.median == 1
    assert statistics.condition_words is not None
    assert statistics.condition_words.mean == pytest.approx((3 * 2 + 4) / 7)
    assert statistics.condition_words.median == 1
    # Case is ignored and ties are in the order of the alphabet, but the rows that repeat a
    # condition are those of the very same one.
    assert statistics.frequent_conditions == (("the animal", 3), ("color", 2))
    assert (statistics.distinct_conditions, statistics.repeated_condition_rows) == (3, 2)
    assert statistics.mean_gap == pytest.approx((3 + 1.3) / 2)
    assert statistics.gap_histogram == ((1.3, 1), (3.0, 1))
    assert statistics.first_is_higher_share == 0.5


def test_describe_unlabeled_file_has_no_gap(write_csts):
    statistics = describe(load_csts(write_csts("A,B,C,-1\n")))
    assert (statistics.mean_gap, statistics.first_is_higher_share) == (None, None)
    assert statistics.label_histogram == ()


def test_describe_without_conditions_has_none():
    statistics = describe(Task("t", "0", ("A",), ("B",), None, np.array([1], np.float32)))
    assert statistics.condition_words is None
    assert statistics.frequent_conditions == ()
    assert statistics.repeated_condition_rows == 0


def test_describe_no_rows_or_negative_top_refused(write_csts):
    with pytest.raises(InputError, match=r"'top' must be 0 or more"):
        describe(load_csts(write_csts(CSTS)), top=-1)
    with pytest.raises(InputError, match="has no rows"):
        describe(Task("t", "0", (), (), (), np.empty(0, np.float32)))


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


def test_pair_rows_label_decides_and_every_kind_is_counted():
    pairing = pair_rows(task_of(ROWS))
    assert list(zip(pairing.high, pairing.low, strict=True))[:2] == [(2, 0), (1, 3)]
    # K-L: of 6 combinations of 1, 3, 3, 5 one is a tie. E-F is the other tie.
    assert pairing.pairs == 2 + 5
    assert pairing.ties == 2
    # G-H, I-J, whose partner has no label, and B-A.
    assert pairing.lone_rows == 3
    assert (pairing.unlabeled_rows, pairing.larger_groups) == (1, 1)
    ids = pairing.pair_ids
    assert ids[8] == -1
    assert ids[0] == ids[2] != ids[9]
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


def test_pair_rows_counts_logged_if_there_are_conditions(caplog):
    task = Task("t", "0" * 12, ("A", "A"), ("B", "B"), None, np.array([1, 3], np.float32), (0, 5))
    with caplog.at_level(logging.INFO, logger="condsim"):
        pair_rows(task_of(ROWS))
        assert pair_rows(task).high.tolist() == [1]
    assert caplog.messages == [
        "t: 7 high-low pairs, 2 ties, 3 lone rows, 1 unlabeled rows, 1 larger groups"
    ]


def test_pair_rows_released_files_counts(released):
    train = pair_rows(load_csts(released("csts-reannotated/train.csv")))
    assert train.pairs + train.ties == 5671
    # "the first row of a pair has a label >= the second in 4837 of 5671"
    assert int((train.high < train.low).sum()) + train.ties == 4837
    assert np.bincount(train.pair_ids).tolist() == [2] * 5671
    dev = pair_rows(load_csts(released("csts-reannotated/dev.csv")))
    assert dev.unlabeled_rows == 168
    assert 2 * (dev.pairs + dev.ties) + dev.lone_rows == 1814
