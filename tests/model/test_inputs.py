from __future__ import annotations

from collections import deque

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from condsim.errors import InputError
from condsim.model.base import check_rows, check_scale, distinct, rescaled


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


@pytest.mark.parametrize("marks", ["???", " . ", "—", "(…)", "\u200b"])
def test_check_rows_condition_of_punctuation_refused(marks):
    rule = "must have a letter, digit or symbol, not punctuation alone"
    with pytest.raises(InputError, match=rf"The condition {rule}, got .*'the sport'\.$"):
        check_rows(marks, sentences="a")
    with pytest.raises(InputError, match=rf"Each of the 'conditions' {rule}.* at index 1"):
        check_rows(["c", marks], sentences=["a", "b"])
    check_rows(["🍕", "$", "C++", "5", "语言"], sentences=marks)


def test_check_rows_single_text_named_without_a_row():
    with pytest.raises(InputError, match=r"^The sentence2 must have text, got ' '\. Correct it\.$"):
        check_rows("c", sentences1="a", sentences2=" ")


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["a"]])
def test_check_rows_no_text_refused_with_index(wrong):
    with pytest.raises(InputError, match=r"'conditions' must be a str.* at index 0"):
        check_rows([wrong], sentences=["a"])


@pytest.mark.parametrize(
    "wrong", [None, 3, {"a"}, {"a": "b"}, np.array("a"), (text for text in "ab"), polars.col("a")]
)
def test_check_rows_no_sequence_refused_with_what_to_pass(wrong):
    said = (
        r"'sentences' must be one text or a sequence .* Got \w+ instead\. Pass a list, or a column"
    )
    with pytest.raises(InputError, match=said):
        check_rows("c", sentences=wrong)


TABLE = {"a": ["x", "y"]}


@pytest.mark.parametrize(
    "table",
    [
        pandas.DataFrame(TABLE),
        polars.DataFrame(TABLE),
        polars.LazyFrame(TABLE),
        pyarrow.table(TABLE),
        pyarrow.RecordBatch.from_pydict(TABLE),
    ],
    ids=lambda table: f"{type(table).__module__}.{type(table).__name__}",
)
def test_check_rows_table_refused_with_what_to_pass(table):
    said = rf"must be one text .* Got {type(table).__name__} instead\. Pass one of its columns\.$"
    with pytest.raises(InputError, match=said):
        check_rows("c", sentences=table)


def test_check_rows_relation_of_duckdb_refused():
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 'x' AS a")
        with pytest.raises(InputError, match="Pass one of its columns"):
            check_rows("c", sentences=relation)


def test_check_rows_half_a_surrogate_pair_refused():
    with pytest.raises(InputError, match=r"'sentences' must be valid Unicode.* at index 1"):
        check_rows("c", sentences=["é", "a \ud800"])


def test_check_rows_huge_value_shown_cut():
    with pytest.raises(InputError) as caught:
        check_rows("c", sentences=[list(range(9999))])
    assert len(str(caught.value)) < 300


def columns_of(texts):
    """A column of texts as each library has it."""
    return {
        "deque": deque(texts),
        "numpy str": np.array(texts),
        "numpy object": np.array(texts, dtype=object),
        "numpy StringDType": np.array(texts, dtype=np.dtypes.StringDType(na_object=None)),
        "pandas": pandas.Series(texts, index=range(7, 7 + len(texts))),
        "pandas object": pandas.Series(texts, dtype=object),
        "pandas category": pandas.Series(texts, dtype="category"),
        "pandas Index": pandas.Index(texts),
        "polars": polars.Series(texts),
        "polars category": polars.Series(texts, dtype=polars.Categorical),
        "arrow": pyarrow.array(texts),
        "arrow large": pyarrow.array(texts, pyarrow.large_string()),
        "arrow view": pyarrow.array(texts, pyarrow.string_view()),
        "arrow dictionary": pyarrow.array(texts).dictionary_encode(),
        "arrow chunks": pyarrow.chunked_array([texts[:1], texts[1:]], pyarrow.string()),
    }


KINDS = list(columns_of(["a"]))


@pytest.mark.parametrize("kind", KINDS)
def test_check_rows_columns_of_libraries_are_lists_of_str(kind):
    texts = ["a", "é b", "a"]
    column = columns_of(texts)[kind]
    rows = check_rows(column, sentences=column)
    assert (rows.sentences, rows.conditions) == ((texts,), texts)
    assert {type(text) for text in rows.sentences[0]} == {str}
    assert not rows.single


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "numpy str"])
def test_check_rows_null_of_a_library_named_by_its_row(kind):
    column = columns_of(["a", None, "b"])[kind]
    with pytest.raises(InputError, match=r"must be a str\. Got \S+ at index 1 instead; correct it"):
        check_rows("c", sentences=column)


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
