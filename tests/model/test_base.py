"""Checks of inputs, `same`, and the helpers that scorers share."""

from __future__ import annotations

from collections import deque

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import condsim
from condsim.errors import InputError
from condsim.model.base import PairScorer, check_rows


def test_check_rows_single_texts_are_one_row():
    rows = check_rows("c", sentences1="a", sentences2="b")
    assert rows.single
    assert [list(column) for column in (*rows.sentences, rows.conditions)] == [["a"], ["b"], ["c"]]
    assert not check_rows("c", sentences1=["a"], sentences2="b").single


def test_check_rows_single_condition_is_repeated():
    rows = check_rows("c", sentences1=["a", "b"], sentences2=("d", "e"))
    assert not rows.single
    assert rows.conditions == ["c", "c"]
    assert len(check_rows("c", sentences1=[], sentences2=[])) == 0


def test_check_rows_lengths_differ_refused():
    with pytest.raises(InputError, match="must have the same length; got 2 and 1 and 3"):
        check_rows(["x", "y", "z"], sentences1=["a", "b"], sentences2=["c"])


@pytest.mark.parametrize("empty", ["", "  ", "\n"])
def test_check_rows_empty_text_refused_with_index(empty):
    with pytest.raises(InputError, match=r"'sentences2' must have text; got .* at index 1"):
        check_rows("c", sentences1=["a", "b"], sentences2=["c", empty])
    with pytest.raises(InputError, match=r"^The sentence2 must have text"):
        check_rows("c", sentences1="a", sentences2=empty)


@pytest.mark.parametrize("marks", ["???", " . ", "—", "(…)", "\u200b"])
def test_check_rows_condition_of_punctuation_refused(marks):
    with pytest.raises(InputError, match="The condition must have a letter"):
        check_rows(marks, sentences="a")
    with pytest.raises(InputError, match=r"'condition' must have a letter.* at index 1"):
        check_rows(["c", marks], sentences=["a", "b"])
    check_rows(["🍕", "$", "C++", "5", "语言"], sentences=marks)


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"]])
def test_check_rows_not_a_text_refused_with_index(value):
    with pytest.raises(InputError, match=r"'condition' must be a str.* at index 0"):
        check_rows([value], sentences=["a"])


@pytest.mark.parametrize(
    "value", [None, 3, {"a"}, {"a": "b"}, np.array("a"), (text for text in "ab"), polars.col("a")]
)
def test_check_rows_not_a_sequence_refused(value):
    with pytest.raises(InputError, match=r"'sentences' must be one text or a sequence"):
        check_rows("c", sentences=value)


@pytest.mark.parametrize(
    "kind",
    [
        pandas.DataFrame,
        polars.DataFrame,
        polars.LazyFrame,
        pyarrow.table,
        pyarrow.RecordBatch.from_pydict,
        lambda _: duckdb.sql("SELECT 'x' AS a"),
    ],
)
def test_check_rows_table_refused_with_advice(kind):
    with pytest.raises(InputError, match="pass one of its columns"):
        check_rows("c", sentences=kind({"a": ["x", "y"]}))


def test_check_rows_half_a_surrogate_pair_refused():
    with pytest.raises(InputError, match=r"'sentences' must be valid Unicode.* at index 1"):
        check_rows("c", sentences=["é", "a \ud800"])


def columns_of(texts):
    """Column of texts in the types of each library."""
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


@pytest.mark.parametrize("kind", columns_of(["a"]))
def test_check_rows_columns_of_libraries_become_lists_of_str(kind):
    texts = ["a", "é b", "a"]
    column = columns_of(texts)[kind]
    rows = check_rows(column, sentences=column)
    assert (rows.sentences, rows.conditions) == ((texts,), texts)
    assert {type(text) for text in rows.sentences[0]} == {str}
    if kind != "numpy str":
        with pytest.raises(InputError, match=r"must be a str; got \S+ at index 1"):
            check_rows("c", sentences=columns_of(["a", None, "b"])[kind])


class WordScorer(PairScorer):
    """0.7 if the condition is in both sentences, else 0.1."""

    def __init__(self):
        self.scored = 0

    def _score_rows(self, rows, scale):
        self.scored += len(rows)
        triples = zip(*rows.sentences, rows.conditions, strict=True)
        return np.array([0.7 if c in a and c in b else 0.1 for a, b, c in triples], np.float32)


def test_same_pair_needs_every_condition():
    scorer = WordScorer()
    assert scorer.same("on lamp", "lamp on", ["on", "lamp"], at_least=0.7) is True
    assert scorer.same("on lamp", "lamp off", ["on", "lamp"], at_least=0.7) is False
    assert scorer.same("on lamp", "lamp off", "lamp", at_least=0.7) is True


def test_same_columns_score_only_rows_that_are_still_the_same():
    scorer = WordScorer()
    same = scorer.same("on lamp", ["on lamp", "off lamp", "on"], ("on", "lamp"), at_least=0.7)
    assert same.tolist() == [True, False, False]
    assert scorer.scored == 3 + 2


def test_same_careful_asks_the_judge_about_pairs_that_pass():
    pairs = ["the lamp is on"] * 3, ["the lamp is on", "the lamp is not on", "a dog"]
    same = WordScorer().same(*pairs, ["lamp", "on"], at_least=0.7)
    careful = WordScorer().same(*pairs, ["lamp", "on"], at_least=0.7, careful=True)
    assert (same.tolist(), careful.tolist()) == ([True, True, False], [True, False, False])


@pytest.mark.parametrize(
    ("conditions", "at_least", "message"),
    [([], 0.7, "at least one"), (["on"], 70, "from 0 to 1"), ([""], 0.7, "have text")],
)
def test_same_bad_input_refused(conditions, at_least, message):
    with pytest.raises(InputError, match=message):
        WordScorer().same("a", "b", conditions, at_least=at_least)


def test_score_matrix_has_a_row_for_each_pair_and_a_column_for_each_condition():
    model = condsim.load()
    first, second = ["A red car.", "A dog runs."], ["A red bus.", "A black dog sleeps."]
    conditions = ["the color", "the use", "the animal"]
    matrix = model.score_matrix(first, second, conditions)
    assert matrix.shape == (2, 3)
    columns = [model.score(first, second, condition) for condition in conditions]
    assert matrix == pytest.approx(np.stack(columns, axis=1), abs=1e-6)
    assert model.score_matrix(first[0], second, conditions, scale="raw").shape == (2, 3)
    assert model.score_matrix(first[0], second[0], "the use").shape == (1, 1)
    with pytest.raises(InputError, match="at least one condition"):
        model.score_matrix(first, second, [])


def test_model_in_a_notebook_names_itself():
    model = condsim.load()
    assert repr(model) == f"OnnxScorer({model.name!r})"
    assert '<td dir="auto">384</td>' in model._repr_html_()
