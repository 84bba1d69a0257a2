from __future__ import annotations

import json

import numpy as np
import pytest

from condsim.data.csts import load_csts
from condsim.data.tasks import describe
from condsim.errors import InputError
from condsim.types import Task

ROWS = (
    "A cat sits.,A dog runs.,The animal,5\n"
    "A cat sits.,A dog runs.,the animal,2\n"
    "One,Two words,sport,1\n"
    "One,Two words,sport,2.3\n"
    "Three,Four,the animal,4\n"
    "Three,Four,colour,4\n"
    "Five,Six,colour,-1\n"
)


def test_describe_counts_every_kind(write_csts):
    statistics = describe(load_csts(write_csts(ROWS)))
    assert (statistics.rows, statistics.labelled_rows, statistics.unlabelled_rows) == (7, 6, 1)
    assert statistics.sentence_pairs == 4
    assert (statistics.high_low_pairs, statistics.ties, statistics.lone_rows) == (2, 1, 0)
    assert statistics.unique_sentences == 8


def test_describe_histogram_counts_labels(write_csts):
    statistics = describe(load_csts(write_csts(ROWS)))
    assert statistics.label_histogram == ((1.0, 1), (2.0, 1), (2.3, 1), (4.0, 2), (5.0, 1))


def test_describe_lengths_in_words(write_csts):
    statistics = describe(load_csts(write_csts(ROWS)))
    # Sentences: 4 of 3 words, 2 of 1 and 2 of 2, then 6 of 1.
    assert statistics.sentence_words.mean == pytest.approx((12 + 2 + 4 + 6) / 14)
    assert statistics.sentence_words.median == 1
    assert statistics.condition_words is not None
    assert statistics.condition_words.mean == pytest.approx((3 * 2 + 4) / 7)
    assert statistics.condition_words.median == 1


def test_describe_frequent_conditions_case_ignored_ties_by_alphabet(write_csts):
    statistics = describe(load_csts(write_csts(ROWS)), top=2)
    assert statistics.frequent_conditions == (("the animal", 3), ("colour", 2))
    assert statistics.distinct_conditions == 3


def test_describe_gap_and_order(write_csts):
    statistics = describe(load_csts(write_csts(ROWS)))
    assert statistics.mean_gap == pytest.approx((3 + 1.3) / 2)
    assert statistics.gap_histogram == ((1.3, 1), (3.0, 1))
    assert statistics.first_is_higher_share == 0.5


def test_describe_repeated_condition_counted_exactly(write_csts):
    # "The animal" and "the animal" are not the very same condition.
    assert describe(load_csts(write_csts(ROWS))).repeated_condition_rows == 2


def test_describe_unlabelled_file_has_no_gap(write_csts):
    statistics = describe(load_csts(write_csts("A,B,C,-1\n")))
    assert statistics.mean_gap is None
    assert statistics.first_is_higher_share is None
    assert statistics.label_histogram == ()


def test_describe_without_conditions_has_none():
    statistics = describe(Task("t", "0", ("A",), ("B",), None, np.array([1], np.float32)))
    assert statistics.condition_words is None
    assert statistics.frequent_conditions == ()
    assert statistics.repeated_condition_rows == 0


def test_to_dict_is_json(write_csts):
    text = json.dumps(describe(load_csts(write_csts(ROWS))).to_dict(), allow_nan=False)
    read = json.loads(text)
    assert read["label_histogram"] == {"1": 1, "2": 1, "2.3": 1, "4": 2, "5": 1}
    assert read["frequent_conditions"]["the animal"] == 3
    assert read["sentence_words"]["median"] == 1


def test_describe_top_negative_refused(write_csts):
    with pytest.raises(InputError, match=r"'top' must be 0 or more; got -1"):
        describe(load_csts(write_csts(ROWS)), top=-1)


def test_describe_no_rows_refused():
    with pytest.raises(InputError, match="has no rows"):
        describe(Task("t", "0", (), (), (), np.empty(0, np.float32)))


def test_describe_released_train_counts(released):
    statistics = describe(load_csts(released / "train.csv"))
    assert statistics.sentence_pairs == 5671
    assert statistics.repeated_condition_rows == 2 * 53
    assert statistics.label_histogram[2] == (3.0, 3790)
    assert sum(count for _, count in statistics.gap_histogram) == statistics.high_low_pairs
