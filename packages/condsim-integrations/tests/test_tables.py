"""The Polars namespace, the pandas accessor and the function in DuckDB."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.words import WordEncoder

import condsim
from condsim.errors import InputError, ModelError
from condsim_integrations.duckdb import register_duckdb
from condsim_integrations.pandas import register_pandas
from condsim_integrations.polars import register_polars

FIRST = ["a red cat", "a red cat", None, "a black dog", "a blue cat"]
SECOND = ["a red dog", "a black cat", "a dog", None, "a blue dog"]
CONDITIONS = ["the color", "the animal", "the animal", "the animal", None]
BY_COLOR = [1.0, 0.0, None, None, 1.0]
BY_ROW = [1.0, 1.0, None, None, None]
COLUMNS = {"a": FIRST, "b": SECOND, "condition": CONDITIONS}


@pytest.fixture
def table(scorer):
    register_polars(scorer)
    return pl.DataFrame(COLUMNS)


@pytest.fixture
def frame(scorer):
    register_pandas(scorer)
    return pd.DataFrame(COLUMNS, index=[10, 20, 30, 40, 50])


@pytest.fixture
def connection(scorer):
    with duckdb.connect() as connection:
        register_duckdb(connection, model=scorer)
        yield connection


def score_in_polars(columns, condition, **options):
    condition = pl.col("condition") if condition is None else condition
    score = pl.col("a").condsim.score("b", condition=condition)
    result = pl.DataFrame(columns).lazy().with_columns(score=score).collect(**options)
    assert result.schema["score"] == pl.Float32
    assert result["a"].to_list() == columns["a"]
    return result["score"].to_list()


def score_in_polars_streaming(columns, condition):
    return score_in_polars(columns, condition, engine="streaming")


def score_in_pandas(columns, condition):
    frame = pd.DataFrame(columns, index=[10, 20, 30, 40, 50])
    condition = frame["condition"] if condition is None else condition
    result = frame.condsim.score("a", "b", condition=condition)
    assert result.index.tolist() == [10, 20, 30, 40, 50]
    assert (result.name, result.dtype) == ("score", np.float32)
    return [None if np.isnan(score) else score for score in result]


def score_in_duckdb(columns, condition):
    with duckdb.connect() as connection:
        register_duckdb(connection, model=WordEncoder())
        rows = list(zip(*columns.values(), strict=True))
        connection.execute("CREATE TABLE t (a VARCHAR, b VARCHAR, condition VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        condition = "condition" if condition is None else f"'{condition}'"
        result = connection.execute(f"SELECT condsim_score(a, b, {condition}) FROM t").fetchall()
    return [score for (score,) in result]


@pytest.mark.usefixtures("table", "frame")
@pytest.mark.parametrize(
    "score", [score_in_polars, score_in_polars_streaming, score_in_pandas, score_in_duckdb]
)
def test_score_of_missing_or_blank_texts_is_missing(score):
    assert score(COLUMNS, "the color") == BY_COLOR
    assert score(COLUMNS, None) == BY_ROW
    blank = COLUMNS | {"b": [*SECOND[:4], " "], "condition": [" ", *CONDITIONS[1:]]}
    assert score(blank, "the color") == [1, 0, None, None, None]
    assert score(blank, None) == [None, 1, None, None, None]


def test_polars_score_literal_stands_for_every_row(table):
    score = pl.col("a").condsim.score(pl.lit("a red bus"), condition="the color")
    assert table.select(score)["a"].to_list() == [1, 1, None, 0, 0]
    nothing = pl.col("a").condsim.score(pl.lit(None, pl.String), condition="the color")
    assert table.select(nothing)["a"].null_count() == 5


def test_polars_score_other_expressions_and_types(table):
    casted = table.cast({"b": pl.Categorical})
    upper = pl.col("a").str.to_lowercase().condsim.score(pl.col("b"), condition="the color")
    assert casted.select(upper)["a"].to_list() == BY_COLOR
    scaled = pl.col("a").condsim.score("b", condition="the color", scale="likert")
    assert table.select(scaled)["a"].to_list() == [5, 1, None, None, 5]
    assert table.clear().select(scaled)["a"].to_list() == []


def test_polars_score_numbers_refused(table):
    with pytest.raises(InputError, match=r"'sentences2' must be a str; got 7 at index 0"):
        table.select(pl.col("a").condsim.score(pl.lit(7)))
    numbers = table.with_columns(b=pl.Series(["x", "x", "x", None, 7], dtype=pl.Object))
    with pytest.raises(InputError, match="got 7 at index 4"):
        numbers.select(pl.col("a").condsim.score("b"))


def test_register_again_changes_the_model(table, frame, connection, ranker_only):
    score = pl.col("a").condsim.score("b", condition="the animal")
    register_polars(ranker_only)
    later = pl.col("a").condsim.score("b", condition="the animal")
    assert table.select(score)["a"].to_list()[0] == 0
    assert table.select(later)["a"].to_list()[0] == 1
    register_pandas(ranker_only)
    assert frame.condsim.score("a", "b", condition="the animal")[10] == 1
    register_duckdb(connection, model=ranker_only)
    query = "SELECT condsim_score('a red cat', 'a dog', 'the animal')"
    assert connection.execute(query).fetchone() == (1,)


@pytest.mark.parametrize("register", [register_polars, register_pandas])
def test_register_unknown_model_refused(register):
    with pytest.raises(ModelError):
        register("no/such/folder")


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_pandas_score_condition_from_a_column(frame, dtype):
    frame = frame.astype(dtype)
    found = frame.condsim.score("a", "b", condition=frame["condition"])
    np.testing.assert_array_equal(found, np.array(BY_ROW, np.float32))


def test_pandas_score_filtered_frame_keeps_its_index(frame):
    some = frame[frame["a"].notna()].iloc[::-1]
    found = some.condsim.score("a", "b", condition=some["condition"])
    assert found.index.tolist() == [50, 40, 20, 10]
    with pytest.raises(InputError, match="'condition' must have the index of the frame"):
        some.condsim.score("a", "b", condition=frame["condition"])


@pytest.mark.parametrize("column", [list, np.array, tuple, pd.Index, pa.array, pl.Series])
def test_pandas_score_conditions_as_a_sequence_are_one_for_each_row(frame, column):
    found = frame.condsim.score("a", "b", condition=column(CONDITIONS))
    np.testing.assert_array_equal(found, np.array(BY_ROW, np.float32))
    with pytest.raises(InputError, match="one for each row of the frame; got 2 for 5 rows"):
        frame.condsim.score("a", "b", condition=column(CONDITIONS[:2]))


def test_pandas_score_condition_column_is_a_name_and_condition_a_text(frame):
    found = frame.condsim.score("a", "b", condition_column="condition")
    np.testing.assert_array_equal(found, np.array(BY_ROW, np.float32))
    word = frame.condsim.score("a", "b", condition="condition")
    assert word.notna().tolist() == [True, True, False, False, True]
    with pytest.raises(InputError, match="Unknown column 'conditon'"):
        frame.condsim.score("a", "b", condition_column="conditon")
    with pytest.raises(InputError, match="either 'condition' or 'condition_column'"):
        frame.condsim.score("a", "b", condition="the color", condition_column="condition")


@pytest.mark.parametrize("condition", [7, {"a": "b"}, pd.DataFrame({"a": FIRST})])
def test_pandas_score_condition_of_another_kind_is_refused(frame, condition):
    with pytest.raises(InputError, match="'condition' must be one text"):
        frame.condsim.score("a", "b", condition=condition)


@pytest.mark.parametrize(
    "values", [CONDITIONS, np.array(["x"]), pl.Series(CONDITIONS), 7, pd.Series(CONDITIONS)]
)
@pytest.mark.parametrize("name", ["other", "condition"])
def test_polars_score_neither_text_nor_expression_is_refused(table, name, values):
    with pytest.raises(InputError, match=f"'{name}' must be a str or an expression"):
        pl.col("a").condsim.score(**{"other": "b", name: values})


def test_score_model_replaces_the_registered_one_for_a_call(table, frame, ranker_only):
    found = frame.condsim.score("a", "b", condition="the animal", model=ranker_only)
    assert found[10] == 1
    assert frame.condsim.score("a", "b", condition="the animal")[10] == 0
    other = pl.col("a").condsim.score("b", condition="the animal", model=ranker_only)
    own = pl.col("a").condsim.score("b", condition="the animal").alias("own")
    assert table.select(other, own).row(0) == (1, 0)
    with pytest.raises(ModelError):
        frame.condsim.score("a", "b", model="no/such/folder")


@pytest.mark.parametrize("condition", ["", ", NULL::VARCHAR", ", ' '"])
def test_duckdb_score_without_a_condition_compares_as_a_whole(connection, condition):
    query = f"SELECT condsim_score(x, 'a cat'{condition}) FROM (VALUES ('a cat'), (NULL)) t(x)"
    expected = None if condition else pytest.approx(1)
    assert connection.execute(query).fetchall() == [(expected,), (None,)]


def test_duckdb_score_of_one_text_or_a_number_is_refused(connection):
    for arguments, rule in (("'a'", "takes two texts"), ("'a', 7, 'b'", "must be a str; got 7")):
        with pytest.raises(duckdb.Error, match=rule):
            connection.execute(f"SELECT condsim_score({arguments})")


def test_pandas_score_unknown_or_doubled_column_is_refused(frame):
    with pytest.raises(InputError):
        frame.condsim.score("a", "conditon")
    doubled = pd.concat([frame, frame[["a"]]], axis=1)
    with pytest.raises(InputError, match="The frame has 2 columns 'a'"):
        doubled.condsim.score("a", "b", condition="the color")


def test_duckdb_score_many_rows_in_vectors(connection, scorer):
    scorer.calls.clear()
    connection.execute("CREATE TABLE many AS SELECT 'red ' || i % 7 AS a FROM range(10000) r(i)")
    query = "SELECT sum(condsim_score(a, 'a red bus', 'the color')) FROM many"
    assert connection.execute(query).fetchone() == (10_000,)
    # 7 texts and the bus, in each vector of 2,048 rows.
    assert sum(scorer.calls) <= 8 * 10
    query = "SELECT count(*) FROM many WHERE condsim_score(a, 'a red bus', 'the color') < 0.5"
    assert connection.execute(query).fetchone() == (0,)


def test_tables_with_the_model_that_ships_give_its_scores():
    model = condsim.load()
    first, second = ["A red car.", "A black cat."], ["A red bus.", "A black dog."]
    expected = model.score(first, second, "the color").tolist()
    register_polars()
    register_pandas()
    columns = {"a": first, "b": second}
    table, frame = pl.DataFrame(columns), pd.DataFrame(columns)
    score = pl.col("a").condsim.score("b", condition="the color")
    assert table.select(score)["a"].to_list() == expected
    assert frame.condsim.score("a", "b", condition="the color").tolist() == expected
    with duckdb.connect() as connection:
        register_duckdb(connection)
        found = connection.execute("SELECT condsim_score(a, b, 'the color') FROM frame").fetchall()
    assert [value for (value,) in found] == expected


@pytest.mark.parametrize(
    "column", [pd.Series, pl.Series, np.array, pa.array, lambda texts: pa.chunked_array([texts])]
)
def test_model_takes_columns_as_they_are(column):
    model = condsim.load()
    first, second, conditions = ["a red cat", "a dog"], ["a red dog", "a cat"], ["color", "animal"]
    columns = [column(texts) for texts in (first, second, conditions)]
    for method in (model.score, model.applicability):
        np.testing.assert_array_equal(method(*columns), method(first, second, conditions))
    np.testing.assert_array_equal(
        model.encode(columns[0], columns[2]), model.encode(first, conditions)
    )
    with pytest.raises(InputError, match=r"'condition' must be one text .* one of its columns"):
        model.encode(columns[0], pd.DataFrame({"a": conditions}))
