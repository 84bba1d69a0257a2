"""One rule for labels: every reader gives the same gold."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from condsim.data.labels import parse_scale, read_labels
from condsim.data.load import load_task
from condsim.errors import InputError

NAN = float("nan")


@pytest.fixture
def write_labels(write):
    def write_file(labels, column="label"):
        row = {"sentence1": "A", "sentence2": "B"} | (
            {"condition": "c"} if column == "label" else {}
        )
        lines = (json.dumps({**row, column: label}) + "\n" for label in labels)
        return write("x.jsonl", "".join(lines))

    return write_file


CASES = [
    ([0, 0.75, 1], (0, 1), [1, 4, 5], [False, True, True]),
    ([1, 4, 5], (1, 5), [1, 4, 5], [False, True, True]),
    ([1, 3, 5], (1, 5), [1, 3, 5], [False, False, True]),
    (["1,0", "4,5", 3], (1, 5), [1, 4.5, 3], [False, True, False]),
    ([0, 2.5, 5], (0, 5), [1, 3, 5], [False, False, True]),
    ([0, 50, 100], (0, 100), [1, 3, 5], [False, False, True]),
    ([-1, -0.5, 0, 1], (-1, 1), [1, 2, 3, 5], [False, False, False, True]),
    (["yes", "no", ""], (1, 5), [5, 1, NAN], [True, False, False]),
    (["yes", "no", -1], (1, 5), [5, 1, NAN], [True, False, False]),
    ([True, False, None], (1, 5), [5, 1, NAN], [True, False, False]),
    ([5, -1, 1], (1, 5), [5, NAN, 1], [True, False, False]),
    ([NAN, 5, 1], (1, 5), [NAN, 5, 1], [False, True, False]),
]


@pytest.mark.parametrize(("labels", "scale", "likert", "alike"), CASES)
def test_labels_scale_told_and_the_same_by_every_reader(write_labels, labels, scale, likert, alike):
    path = write_labels(labels)
    read = read_labels(path)
    assert read.scale == scale
    np.testing.assert_allclose(read.likert, likert)
    assert read.alike.tolist() == alike
    gold = (np.array(likert) - 1) / 4
    np.testing.assert_allclose(load_task(path).gold, gold)
    np.testing.assert_allclose(load_task(write_labels(labels, "score")).gold, gold)


def test_labels_only_ones_are_of_the_usual_scale_which_is_logged(write_labels, caplog):
    caplog.set_level(logging.INFO)
    path = write_labels([1, 1])
    assert read_labels(path).likert.tolist() == [1, 1]
    assert "read as numbers from 1 to 5; for 0 to 1, give --scale 0-1" in caplog.text
    assert read_labels(path, scale=(0, 1)).likert.tolist() == [5, 5]
    read = read_labels(write_labels([1, 4]), scale=(0, 5), positive="4")
    np.testing.assert_allclose(read.likert, [1.8, 4.2])
    assert read.alike.tolist() == [False, True]


def test_labels_of_minus_one_left_out_of_cosines_said(write_labels, caplog):
    caplog.set_level(logging.INFO)
    path = write_labels([1, -1, 0.5])
    np.testing.assert_allclose(read_labels(path).values, [1, NAN, 0.5])
    assert "from 0 to 1; 1 of -1 are left out: give --scale -1-1 to read them" in caplog.text
    np.testing.assert_allclose(read_labels(path, scale=(-1, 1)).values, [1, -1, 0.5])
    np.testing.assert_allclose(load_task(path, scale=(-1, 1)).gold, [1, 0, 0.75])


@pytest.mark.parametrize("column", ["label", "score"])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 7], r"row 2 \(line 2\), column '%s': must be a number from 1 to 5, .* got 7\. Name"),
        ([5, "high"], r"must be a number from 1 to 5, or -1 for no label, got 'high'"),
        (["alike", "maybe"], r"or a word such as 'alike' or 'different', got 'maybe'"),
    ],
)
def test_labels_off_the_scale_are_one_error_in_every_reader(write_labels, labels, message, column):
    path = write_labels(labels, column)
    for read in (load_task, lambda path: read_labels(path, column)):
        with pytest.raises(InputError, match=message.replace("%s", column)):
            read(path)


def test_labels_words_of_many_are_listed_with_how_many_more(write_labels):
    with pytest.raises(InputError, match="'w11' and 3 more"):
        read_labels(write_labels([f"w{number}" for number in range(15)]), positive="w1")


def test_parse_scale_forms():
    assert parse_scale("1-5") == parse_scale("1..5") == parse_scale("1:5") == (1, 5)
    assert parse_scale("-1-1") == (-1, 1)
    for text in ("5-1", "1", "a-b", ""):
        with pytest.raises(InputError, match="--scale: must be LOWEST-HIGHEST"):
            parse_scale(text)
