from __future__ import annotations

import json

import pytest

from condsim.annotation.items import read_items
from condsim.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_items_captions_of_an_item_come_together_and_once(tmp_path):
    path = write(
        tmp_path / "captions.csv", "item_id,caption\nx,one\ny,two\nx,three\nx,one\ny,one\n"
    )
    items = read_items(path)
    assert items.item_ids == ("x", "y")
    assert items.captions == ("one", "three", "two", "one")
    assert items.starts.tolist() == [0, 2, 4]
    assert items.repeated == 1
    assert items.source == "captions"
    assert len(items) == 2


def test_items_other_columns_and_numbers_as_names_are_read(tmp_path):
    rows = [{"image": 7, "text": "one"}, {"image": 8, "text": "two"}]
    path = write(tmp_path / "c.jsonl", "\n".join(map(json.dumps, rows)))
    items = read_items(path, item_column="image", caption_column="text", source="mine")
    assert items.item_ids == ("7", "8")
    assert items.source == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,caption\nx,one\ny,\n", r"row 2 \(line 3\).*the caption of the item 'y' is empty"),
        ("item_id,caption\n,one\ny,two\n", "row 1 .*column 'item_id': must not be empty"),
        ("item_id,caption\nx,one\nx,two\n", "at least two items with different texts, got 1"),
        ("item_id,text\nx,one\n", "column 'caption' is missing"),
    ],
)
def test_items_bad_file_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_items(write(tmp_path / "c.csv", text))


def test_texts_each_distinct_one_is_an_item(tmp_path):
    path = write(tmp_path / "t.csv", "sentence\none\ntwo\none\nthree\n")
    texts = read_items(path, item_column=None, caption_column="sentence")
    assert texts.item_ids == ("row-1", "row-2", "row-4")
    assert texts.captions == ("one", "two", "three")
    assert texts.starts.tolist() == [0, 1, 2, 3]
    assert texts.repeated == 1
