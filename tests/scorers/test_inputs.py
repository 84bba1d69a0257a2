from __future__ import annotations

from collections import deque

import numpy as np
import pandas
import pytest

from condsim.errors import InputError
from condsim.scorers import check_rows, check_scale, distinct, rescaled


def test_check_rows_single_texts_one_row():
    rows = check_rows("c", sentences1="a", sentences2="b")
    assert rows.single
    assert (rows.sentences, rows.conditions) == ((["a"], ["b"]), ["c"])


def test_check_rows_single_condition_stands_for_every_row():
    rows = check_rows("c", sentences1=["a", "b"], sentences2=("d", "e"))
    assert not rows.single
    assert rows.conditions == ["c", "c"]


def test_check_rows_sequence_of_one_is_not_single():
    assert not check_rows("c", sentences1=["a"], sentences2="b").single


def test_check_rows_arrays_of_text_accepted():
    assert len(check_rows(None, sentences=np.array(["a", "b"]))) == 2


def test_check_rows_empty_columns_have_no_rows():
    assert len(check_rows([], sentences1=[], sentences2=[])) == 0
    assert len(check_rows("c", sentences1=[], sentences2=[])) == 0


def test_check_rows_lengths_differ_refused():
    with pytest.raises(InputError, match="Got 2 sentences1, 1 sentences2, 3 conditions"):
        check_rows(["x", "y", "z"], sentences1=["a", "b"], sentences2=["c"])


@pytest.mark.parametrize("empty", ["", "  ", "\n"])
def test_check_rows_empty_text_refused_with_index(empty):
    with pytest.raises(InputError, match=r"'sentences2' must have text.* at index 1"):
        check_rows("c", sentences1=["a", "b"], sentences2=["c", empty])


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["a"]])
def test_check_rows_no_text_refused_with_index(wrong):
    with pytest.raises(InputError, match=r"'conditions' must be a str.* at index 0"):
        check_rows([wrong], sentences=["a"])


@pytest.mark.parametrize("wrong", [3, {"a"}, {"a": "b"}, np.array("a"), (text for text in "ab")])
def test_check_rows_no_sequence_refused(wrong):
    with pytest.raises(InputError, match="'sentences' must be one text or a sequence"):
        check_rows("c", sentences=wrong)


def test_check_rows_half_a_surrogate_pair_refused():
    with pytest.raises(InputError, match=r"'sentences' must be valid Unicode.* at index 1"):
        check_rows("c", sentences=["é", "a \ud800"])


def test_check_rows_huge_value_shown_cut():
    with pytest.raises(InputError) as caught:
        check_rows("c", sentences=[list(range(9999))])
    assert len(str(caught.value)) < 300


def test_check_rows_deque_and_pandas_become_lists():
    rows = check_rows(deque(["c"]), sentences=pandas.Series(["a"], index=[7]))
    assert (rows.sentences, rows.conditions) == ((["a"],), ["c"])


def test_distinct_shares_equal_conditional_sentences():
    sentences, conditions, where = distinct((["a", "b", "a"], ["b", "a", "a"]), ["x", "x", "y"])
    assert list(zip(sentences, conditions, strict=True)) == [("a", "x"), ("b", "x"), ("a", "y")]
    np.testing.assert_array_equal(where, [[0, 1, 2], [1, 0, 2]])


def test_distinct_no_conditions_shares_sentences():
    sentences, conditions, where = distinct((["a", "a"],), None)
    assert (sentences, conditions) == (["a"], None)
    np.testing.assert_array_equal(where, [[0, 0]])


def test_check_scale_unknown_lists_near_names():
    with pytest.raises(InputError, match=r"Unknown scale 'likerd'. Did you mean 'likert'"):
        check_scale("likerd")


def test_rescaled_no_calibration_unit_is_raw():
    raw = np.array([0.5], np.float32)
    assert rescaled(raw, None, "unit") is raw
    assert rescaled(raw, None, "likert")[0] == 3
