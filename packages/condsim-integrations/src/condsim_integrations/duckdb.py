"""Scores in DuckDB's SQL."""

from __future__ import annotations

from contextlib import suppress

from condsim.errors import InputError, requires_extra
from condsim_integrations import Model, score_present, scorer_of

with requires_extra("duckdb"):
    import duckdb
    import pyarrow as pa

_NAME = "condsim_score"


def register_duckdb(connection: duckdb.DuckDBPyConnection, *, model: Model = None) -> None:
    """Add the SQL function ``condsim_score(a, b, condition)`` to a DuckDB connection.

    It takes texts and returns a FLOAT in [0, 1]; NULL where one of them is NULL or blank. Without a
    condition, ``condsim_score(a, b)`` compares the texts as a whole. DuckDB passes up to 2,048 rows
    at a time, and within these each distinct text is encoded once. Called again on a connection,
    `register_duckdb` changes the model.

    Args:
        model: The model that scores; None is the default model.

    Raises:
        ModelError: If there is no such model.
        MissingExtraError: If DuckDB or pyarrow is not installed.

    Example:
        >>> import duckdb
        >>> with duckdb.connect() as connection:
        ...     register_duckdb(connection)
        ...     query = "SELECT condsim_score('A red car.', 'A red bus.', 'the color') > 0"
        ...     connection.execute(query).fetchone()
        (True,)
    """
    scorer = scorer_of(model)

    def score(*columns: pa.Array) -> pa.Array:
        if len(columns) not in (2, 3):
            raise InputError(
                f"{_NAME} takes two texts and an optional condition; got {len(columns)} arguments."
            )
        first, second, *conditions = (column.to_pylist() for column in columns)
        scores = score_present(scorer, first, second, *conditions or [None], scale="unit")
        return pa.array(scores, pa.float32(), from_pandas=True)

    # DuckDB raises this if the function does not exist yet.
    with suppress(duckdb.InvalidInputException):
        connection.remove_function(_NAME)
    connection.create_function(  # type: ignore[call-overload]  # each version has another enum
        _NAME, score, None, "FLOAT", type="arrow", null_handling="special"
    )
