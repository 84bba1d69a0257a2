from __future__ import annotations

import gzip
from pathlib import Path

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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text,topic\n,food\n", "row 1 .*'text': must not be empty"),
        ("a.csv", "body,topic\nSoup,food\n", "column 'text' is missing"),
        ("a.jsonl", '{"text": "A", "attributes": ["b"]}\n', "'attributes': must be an object"),
        ("a.jsonl", '{"text": "A", "attributes": {"": "b"}}\n', "none of them empty"),
        ("a.jsonl", '{"text": "A", "attributes": {"b": {"c": 1}}}\n', "value of 'b' must be"),
        (
            "a.jsonl",
            '{"text1": "A", "text2": "B", "labels": {"size": 5}}\n',
            "'size' must be a number from 0 .* got 5",
        ),
    ],
)
def test_iter_criteria_broken_rule_place_and_rule(write, name, content, message):
    with pytest.raises(InputError, match=message):
        list(iter_criteria(write(name, content)))


def test_iter_criteria_empty_separator_error(write):
    with pytest.raises(InputError, match="'separator'"):
        list(iter_criteria(write("a.csv", "text,topic\nA,b\n"), separator=""))


def test_iter_criteria_collected_sets_read():
    folder = Path(__file__).resolve().parents[2] / "../shared/data/criteria"
    if not folder.is_dir():
        pytest.skip("the collected sets are not here")
    kinds = {path.parent.name: next(iter_criteria(path)) for path in folder.glob("*/dev.jsonl.gz")}
    assert len(kinds) == 21  # one has only a test split
    assert {name for name, row in kinds.items() if isinstance(row, CriteriaPair)} == {
        "walmart_amazon",
        "wdc",
    }
