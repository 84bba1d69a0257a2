from __future__ import annotations

import pytest
from papers.relabelled import caption_key, caption_rows, read_keys, read_labels, row_key

from condsim.data.held_out import held_out_texts, text_digest
from condsim.errors import InputError


def test_row_key_ignores_the_order_of_sentences_case_and_punctuation():
    key = row_key("A dog runs.", "Two cats.", "kind of animal")
    assert key == row_key("two cats", "a dog runs", "Kind of animal")
    assert key != row_key("a dog runs", "two cats", "kind of pet")
    assert len(key) == 16


def test_published_labels_are_half_steps_from_1_to_5():
    labels = read_labels()
    assert len(labels) == 10_789
    assert all(
        2 * label == int(2 * label) or 4 * label == int(4 * label) for label in labels.values()
    )
    assert read_keys().isdisjoint(labels)


def test_read_labels_out_of_range_raises(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("key,label\n0123456789abcdef,6\n")
    with pytest.raises(InputError, match=r"row 1.*6"):
        read_labels(path)


def test_caption_rows_join_what_there_is_and_leave_out_what_is_held_out(tmp_path):
    captions, labels, held = (tmp_path / name for name in ("c.tsv", "l.csv", "held.sha256"))
    texts = ["A dog runs.", "Two cats sleep.", "A bus."]
    captions.write_text("image_id\tcaption\n" + "".join(f"1\t{text}\n" for text in texts))
    dog, cats, bus = map(caption_key, texts)
    rows = [f"{dog},{cats},type of animal,2", f"{dog},{bus},motion,4", f"{dog},0123,place,1"]
    labels.write_text("first,second,condition,label\n" + "\n".join(rows) + "\n")
    made = list(caption_rows([captions], exclude=held_out_texts([]), path=labels))
    assert [(row.sentence2, row.condition, row.label) for row in made] == [
        ("Two cats sleep.", "type of animal", 2.0),
        ("A bus.", "motion", 4.0),
    ]
    held.write_text(text_digest("a bus").hex() + "\n")
    without = caption_rows([captions], exclude=held_out_texts([held]), path=labels)
    assert [row.sentence2 for row in without] == ["Two cats sleep."]
