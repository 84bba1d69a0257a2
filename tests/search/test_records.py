"""Cells of tables as values: missing numbers, truth, and names of columns of other systems."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from condsim.errors import InputError
from condsim.search.clustering import cluster
from condsim.search.records import RowReader, row_table


def stored(path):
    reader = RowReader(path, "text", None)
    summary = reader.summary()
    rows = list(reader)
    vectors = np.zeros((len(rows), 2), np.float32)
    numbers = np.arange(len(rows))
    table = row_table(rows, summary.kinds, [str(row.number) for row in rows], numbers, vectors)
    return summary.kinds, table.to_pydict()


def test_missing_numbers_are_null_and_truth_is_a_bool(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,gross,seen,land\na,100,True,NA\nb,#N/A,FALSE,DE\nc,NA,,FR\n")
    kinds, columns = stored(path)
    assert kinds == {"text": "text", "gross": "number", "seen": "bool", "land": "text"}
    assert columns["gross"] == [100, None, None]
    assert columns["seen"] == [True, False, None]
    assert columns["land"] == ["NA", "DE", "FR"]


def test_underscore_of_a_column_name_is_dropped(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"_id": {"$oid": "65a0"}, "text": "a", "_score": 1}\n')
    assert list(stored(path)[0]) == ["id", "text", "score"]
    path.write_text('{"_id": 1, "id": 2, "text": "a"}\n')
    with pytest.raises(InputError, match=r"two columns would be stored as 'id'.*Rename one"):
        stored(path)


def test_frame_and_vectors_of_nan_refused_with_a_way_out():
    with pytest.raises(InputError, match=r"give frame\.to_dict\('records'\)"):
        RowReader(pd.DataFrame({"text": ["a"]}), "text", None)
    with pytest.raises(InputError, match="must have no NaN and no infinity"):
        cluster(["a b", "b c", "d"], "x", k=2, vectors=np.full((3, 4), np.nan, np.float32))
