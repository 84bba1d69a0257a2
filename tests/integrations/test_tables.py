"""The Polars namespace, the pandas accessor and the function in DuckDB."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import condsim
from condsim.errors import InputError, ModelError
from condsim.integrations.duckdb import register_duckdb
from condsim.integrations.pandas import register_pandas
from condsim.integrations.polars import register_polars

FIRST = ["a red cat", "a red cat", None, "a black dog", "a blue cat"]
SECOND = ["a red dog", "a black cat", "a dog", None, "a blue dog"]
CONDITIONS = ["the colour", "the animal", "the animal", "the animal", None]
BY_COLOUR = [1.0, 0.0, None, None, 1.0]
BY_ROW = [1.0, 1.0, None, None, None]


@pytest.fixture
def table(scorer):
    register_polars(scorer)
    return pl.DataFrame({"a": FIRST, "b": SECOND, "condition": CONDITIONS})


@pytest.fixture
def frame(scorer):
    register_pandas(scorer)
    rows = {"a": FIRST, "b": SECOND, "condition": CONDITIONS}
    return pd.DataFrame(rows, index=[10, 20, 30, 40, 50])


@pytest.fixture
def connection(scorer):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a VARCHAR, b VARCHAR, condition VARCHAR)")
        rows = list(zip(FIRST, SECOND, CONDITIONS, strict=True))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        register_duckdb(connection, model=scorer)
        yield connection


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize(
    ("condition", "expected"), [("the colour", BY_COLOUR), (pl.col("condition"), BY_ROW)]
)
def test_polars_score_nulls_are_null(table, engine, condition, expected):
    score = pl.col("a").condsim.score("b", condition=condition)
    found = table.lazy().with_columns(score=score).collect(engine=engine)
    assert found.schema["score"] == pl.Float32
    assert found["score"].to_list() == expected
    assert found["a"].to_list() == FIRST


def test_polars_score_name_is_that_of_the_expression(table):
    assert table.select(pl.col("a").condsim.score("b")).columns == ["a"]


def test_polars_score_literal_stands_for_every_row(table):
    score = pl.col("a").condsim.score(pl.lit("a red bus"), condition="the colour")
    assert table.select(score)["a"].to_list() == [1, 1, None, 0, 0]
    nothing = pl.col("a").condsim.score(pl.lit(None, pl.String), condition="the colour")
    assert table.select(nothing)["a"].null_count() == 5


def test_polars_score_other_expressions_and_types(table):
    casted = table.cast({"b": pl.Categorical})
    upper = pl.col("a").str.to_lowercase().condsim.score(pl.col("b"), condition="the colour")
    assert casted.select(upper)["a"].to_list() == BY_COLOUR


def test_polars_score_no_rows_gives_none(table):
    score = pl.col("a").condsim.score("b", condition=pl.lit("the colour"))
    assert table.clear().select(score)["a"].to_list() == []


def test_polars_score_scale_is_passed_on(table):
    score = pl.col("a").condsim.score("b", condition="the colour", scale="likert")
    assert table.select(score)["a"].to_list() == [5, 1, None, None, 5]


def test_polars_score_blank_is_null(table):
    blank = table.with_columns(b=pl.Series([*SECOND[:4], " "]))
    score = pl.col("a").condsim.score("b", condition="the colour")
    assert blank.select(score)["a"].to_list() == [1, 0, None, None, None]


def test_polars_score_numbers_refused(table):
    with pytest.raises(InputError, match=r"'sentences2' must be a str; got 7 at index 0"):
        table.select(pl.col("a").condsim.score(pl.lit(7)))
    numbers = table.with_columns(b=pl.Series(["x", "x", "x", None, 7], dtype=pl.Object))
    with pytest.raises(InputError, match="got 7 at index 4"):
        numbers.select(pl.col("a").condsim.score("b"))


def test_polars_score_of_groups(table):
    score = pl.col("a").condsim.score("b", condition="the colour").mean()
    found = table.group_by(pl.col("a").is_null(), maintain_order=True).agg(score=score)
    assert found["score"].to_list() == [pytest.approx(2 / 3), None]


def test_register_polars_again_changes_the_model(table, ranker_only):
    before = pl.col("a").condsim.score("b", condition="the animal")
    register_polars(ranker_only)
    after = pl.col("a").condsim.score("b", condition="the animal")
    assert table.select(before)["a"].to_list()[0] == 0
    assert table.select(after)["a"].to_list()[0] == 1


@pytest.mark.parametrize("register", [register_polars, register_pandas])
def test_register_unknown_model_refused(register):
    with pytest.raises(ModelError, match="There is no model folder"):
        register("no/such/folder")


def test_pandas_score_missing_are_nan(frame):
    found = frame.condsim.score("a", "b", condition="the colour")
    assert found.index.tolist() == [10, 20, 30, 40, 50]
    assert (found.name, found.dtype) == ("score", np.float32)
    np.testing.assert_array_equal(found, np.array(BY_COLOUR, np.float32))


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


def test_pandas_score_unknown_column_names_near_ones(frame):
    with pytest.raises(InputError, match=r"Unknown column 'conditon'. Did you mean 'condition'"):
        frame.condsim.score("a", "conditon")


def test_pandas_score_doubled_column_is_refused(frame):
    doubled = pd.concat([frame, frame[["a"]]], axis=1)
    with pytest.raises(InputError, match="The frame has 2 columns 'a'"):
        doubled.condsim.score("a", "b", condition="the colour")


def test_pandas_score_blank_is_nan(frame):
    frame.loc[50, "a"] = ""
    frame.loc[20, "condition"] = " "
    found = frame.condsim.score("a", "b", condition=frame["condition"])
    assert found.isna().tolist() == [False, True, True, True, True]
    assert frame[2:4].condsim.score("a", "b", condition="the colour").isna().all()


def test_register_pandas_again_changes_the_model(frame, ranker_only):
    register_pandas(ranker_only)
    assert frame.condsim.score("a", "b", condition="the animal")[10] == 1


def test_duckdb_score_nulls_are_null(connection):
    found = connection.execute("SELECT condsim_score(a, b, 'the colour') FROM t").fetchall()
    assert [score for (score,) in found] == BY_COLOUR
    found = connection.execute("SELECT condsim_score(a, b, condition) FROM t").fetchall()
    assert [score for (score,) in found] == BY_ROW


def test_duckdb_score_constants_and_filters(connection):
    query = "SELECT condsim_score('a red cat', 'a cat', 'the animal')"
    assert connection.execute(query).fetchone() == (1,)
    query = "SELECT count(*) FROM t WHERE condsim_score(a, b, 'the colour') >= 0.5"
    assert connection.execute(query).fetchone() == (2,)


def test_duckdb_score_many_rows_in_vectors(connection, scorer):
    scorer.calls.clear()
    connection.execute("CREATE TABLE many AS SELECT 'red ' || i % 7 AS a FROM range(10000) r(i)")
    query = "SELECT sum(condsim_score(a, 'a red bus', 'the colour')) FROM many"
    assert connection.execute(query).fetchone() == (10_000,)
    assert sum(scorer.calls) <= 8 * 10  # 7 texts and the bus, in each vector of 2,048 rows


def test_duckdb_score_blank_is_null(connection):
    found = connection.execute("SELECT condsim_score(a, ' ', 'the colour') FROM t").fetchall()
    assert found == [(None,)] * 5


def test_register_duckdb_again_changes_the_model(connection, ranker_only):
    register_duckdb(connection, model=ranker_only)
    query = "SELECT condsim_score('a red cat', 'a dog', 'the animal')"
    assert connection.execute(query).fetchone() == (1,)


def test_tables_with_the_model_that_ships_give_its_scores():
    model = condsim.load()
    first, second = ["A red car.", "A black cat."], ["A red bus.", "A black dog."]
    expected = model.score(first, second, "the colour").tolist()
    register_polars()
    register_pandas()
    columns = {"a": first, "b": second}
    table, frame = pl.DataFrame(columns), pd.DataFrame(columns)
    score = pl.col("a").condsim.score("b", condition="the colour")
    assert table.select(score)["a"].to_list() == expected
    assert frame.condsim.score("a", "b", condition="the colour").tolist() == expected
    with duckdb.connect() as connection:
        register_duckdb(connection)
        found = connection.execute("SELECT condsim_score(a, b, 'the colour') FROM frame").fetchall()
    assert [value for (value,) in found] == expected


@pytest.mark.parametrize(
    "column", [pd.Series, pl.Series, np.array, pa.array, lambda texts: pa.chunked_array([texts])]
)
def test_model_takes_columns_as_they_are(column):
    model = condsim.load()
    first, second, conditions = ["a red cat", "a dog"], ["a red dog", "a cat"], ["colour", "animal"]
    columns = [column(texts) for texts in (first, second, conditions)]
    for method in (model.score, model.applicability):
        np.testing.assert_array_equal(method(*columns), method(first, second, conditions))
    np.testing.assert_array_equal(
        model.encode(columns[0], columns[2]), model.encode(first, conditions)
    )
    with pytest.raises(InputError, match=r"'condition' must be one text .* one of its columns"):
        model.encode(columns[0], pd.DataFrame({"a": conditions}))
