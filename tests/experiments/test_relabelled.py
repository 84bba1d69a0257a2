from __future__ import annotations

import pytest
from experiments.relabelled import read_keys, read_labels, row_key

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
    with pytest.raises(InputError, match=r"1 to 5. Got 6"):
        read_labels(path)
