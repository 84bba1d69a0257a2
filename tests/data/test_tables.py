from __future__ import annotations

import gzip

import pytest

from condsim.data.tables import CriteriaPair, CriteriaText, iter_criteria
from condsim.errors import InputError


def test_iter_criteria_texts_values_are_tuples(write):
    path = write(
        "a.jsonl",
        '{"text": "Cold soup.", "attributes": {"the dish": ["soup", "soup"], "stars": 2, '
        '"hot": false}}\n'
        '{"text": "Open.", "attributes": {"the dish": [], "hours": null}}\n',
    )
    first, second = iter_criteria(path)
    values = {"the dish": ("soup",), "stars": ("2",), "hot": ("false",)}
    assert first == CriteriaText("Cold soup.", values)
    assert first.location == f"{path}, row 1 (line 1)"
    assert second == CriteriaText("Open.", {})


def test_iter_criteria_gzipped_pairs_read(write):
    line = b'{"text1": "A", "text2": "B", "labels": {"brand": 1, "size": 0.5}}\n'
    (pair,) = iter_criteria(write("a.jsonl.gz", gzip.compress(line)))
    assert pair == CriteriaPair("A", "B", {"brand": 1.0, "size": 0.5})


def test_iter_criteria_table_empty_cell_is_not_mentioned(write):
    path = write("a.tsv", "body\ttopic\tmood\nSoup!\tfood | hot food\t\nLate.\thours\tgood\n")
    first, second = iter_criteria(path, text="body", separator="|")
    assert first == CriteriaText("Soup!", {"topic": ("food", "hot food")})
    assert second == CriteriaText("Late.", {"topic": ("hours",), "mood": ("good",)})


def test_iter_criteria_parquet_numbers_are_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"text": ["Soup!"], "stars": [4.0], "dishes": [["soup", "tea"]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    (row,) = iter_criteria(tmp_path / "a.parquet")
    assert row == CriteriaText("Soup!", {"stars": ("4",), "dishes": ("soup", "tea")})


def test_iter_criteria_chosen_criteria_only_these(write):
    path = write("a.csv", "text,topic,id\nSoup!,food,7\n")
    assert list(iter_criteria(path, criteria=["topic"])) == [
        CriteriaText("Soup!", {"topic": ("food",)})
    ]
    with pytest.raises(InputError, match=r"criterion in .*a.csv.*'topc'.*topic"):
        list(iter_criteria(path, criteria=["topc"]))
    with pytest.raises(InputError, match="'separator'"):
        list(iter_criteria(path, separator=""))


def test_iter_criteria_collected_sets_read(released):
    paths = released("criteria").glob("*/dev.jsonl.gz")
    kinds = {path.parent.name: next(iter_criteria(path)) for path in paths}
    assert len(kinds) == 21  # one has only a test split
    assert {name for name, row in kinds.items() if isinstance(row, CriteriaPair)} == {
        "walmart_amazon",
        "wdc",
    }
