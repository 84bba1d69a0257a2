from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from condsim.data.labels import read_labels
from condsim.errors import InputError


@pytest.fixture
def write_labels(write):
    def write_file(labels):
        return write("x.jsonl", "".join(json.dumps({"label": label}) + "\n" for label in labels))

    return write_file


@pytest.mark.parametrize(
    ("labels", "scale", "values", "alike"),
    [
        ([0, 0.75, 1], (0, 1), [1, 4, 5], [False, True, True]),
        ([1, 4, 5], (1, 5), [1, 4, 5], [False, True, True]),
        ([0, 2.5, 5], (0, 5), [1, 3, 5], [False, False, True]),
        (["yes", "no", ""], None, [5, 1, np.nan], [True, False, False]),
        ([True, False, None], None, [5, 1, np.nan], [True, False, False]),
        ([5, -1, 1], (1, 5), [5, np.nan, 1], [True, False, False]),
        ([float("nan"), 5, 1], (1, 5), [np.nan, 5, 1], [False, True, False]),
    ],
)
def test_read_labels_scale_detected(write_labels, labels, scale, values, alike):
    read = read_labels(write_labels(labels))
    assert read.scale == scale
    np.testing.assert_allclose(read.values, values)
    assert read.alike.tolist() == alike


def test_read_labels_only_ones_fit_two_scales_which_is_logged(write_labels, caplog):
    caplog.set_level(logging.INFO)
    path = write_labels([1, 1])
    assert read_labels(path).values.tolist() == [5, 5]
    assert "numbers from 0 to 1, although from 1 to 5 is possible (--scale 1-5)" in caplog.text
    read = read_labels(path, scale=(1, 5))
    assert (read.values.tolist(), read.alike.any()) == ([1, 1], False)
    read = read_labels(write_labels([1, 4]), scale=(0, 5), positive="4")
    np.testing.assert_allclose(read.values, [1.8, 4.2])


def test_read_labels_words_of_many_are_listed_with_how_many_more(write_labels):
    with pytest.raises(InputError, match="'w11' and 3 more"):
        read_labels(write_labels([f"w{number}" for number in range(15)]), positive="w1")
