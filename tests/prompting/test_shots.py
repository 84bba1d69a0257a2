from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.prompting.prompt import Shots
from condsim.types import Task


def conditional(pairs: int = 6) -> Task:
    """Each pair twice, labels 5 - n % 2 and 1; the low row first in odd pairs."""
    rows = []
    for pair in range(pairs):
        both = [("high", 5.0 - pair % 2), ("low", 1.0)]
        for condition, label in both if pair % 2 else both[::-1]:
            rows.append((f"left {pair}.", f"right {pair}.", condition, label))
    sentences1, sentences2, conditions, labels = zip(*rows, strict=True)
    return Task("train", "0", sentences1, sentences2, conditions, np.array(labels, np.float32))


def plain(rows: int = 5) -> Task:
    return Task(
        "stsb",
        "0",
        tuple(f"left {row}." for row in range(rows)),
        tuple(f"right {row}." for row in range(rows)),
        None,
        np.arange(rows, dtype=np.float32),
        label_range=(0.0, 5.0),
    )


@pytest.mark.parametrize("count", [2, 4])
def test_shots_conditional_pair_stands_together_the_higher_first(count: int):
    examples = Shots(conditional(), count, seed=3).for_query("a", "b")
    assert len(examples) == count
    for high, low in zip(examples[::2], examples[1::2], strict=True):
        assert (high.sentence1, high.sentence2) == (low.sentence1, low.sentence2)
        assert (high.condition, low.condition) == ("high", "low")
        assert high.label > low.label


def test_shots_odd_count_shows_the_last_pairs_higher_row():
    three = Shots(conditional(), 3).for_query("a", "b")
    assert three == Shots(conditional(), 4).for_query("a", "b")[:3]
    assert three[2].condition == "high"


def test_shots_zero_needs_no_labels():
    task = conditional()
    unlabelled = replace(task, labels=np.full(len(task), np.nan, np.float32))
    assert Shots(unlabelled, 0).for_query("a", "b") == []


def test_shots_each_query_has_its_own_the_same_every_time():
    task = conditional(50)
    drawn = [tuple(Shots(task, 2, seed=1).for_query("a", "b", str(row))) for row in range(200)]
    assert len({examples[0].sentence1 for examples in drawn}) > 40  # of 50 pairs
    again = Shots(task, 2, seed=1)
    assert [tuple(again.for_query("a", "b", str(row))) for row in range(200)] == drawn
    other = Shots(task, 2, seed=2)
    assert [tuple(other.for_query("a", "b", str(row))) for row in range(200)] != drawn


def test_shots_do_not_depend_on_the_order_of_the_file():
    task = conditional()
    shuffled = task.take(np.random.default_rng(0).permutation(len(task)))
    for seed in range(5):
        assert Shots(shuffled, 4, seed=seed).for_query("a", "b") == Shots(
            task, 4, seed=seed
        ).for_query("a", "b")


@pytest.mark.parametrize("swap", [False, True])
def test_shots_own_pair_is_never_shown_in_either_order(swap: bool):
    shots = Shots(conditional(3), 4, seed=0)
    for pair in range(3):
        query = (f"LEFT  {pair}", f"right, {pair}! ")
        examples = shots.for_query(*(query[::-1] if swap else query))
        assert len(examples) == 4
        assert f"left {pair}." not in {example.sentence1 for example in examples}


def test_shots_plain_rows_are_single_examples_each_pair_once():
    task = plain()
    doubled = task.take(np.array([0, 0, 1, 2, 3, 4]))
    examples = Shots(doubled, 4, seed=2).for_query("left 0.", "right 0.")
    assert len({example.sentence1 for example in examples}) == 4
    assert all(example.condition is None for example in examples)


def test_shots_rows_of_equal_labels_are_a_pair_as_in_the_released_code():
    task = conditional(3)
    tied = replace(task, labels=np.full(len(task), 3.0, np.float32))
    examples = Shots(tied, 2).for_query("a", "b")
    assert [(example.condition, example.label) for example in examples] == [
        ("high", 3.0),
        ("low", 3.0),
    ]


@pytest.mark.parametrize("rows", [1, 3])
def test_shots_pairs_without_just_two_labels_are_no_examples(rows: int):
    task = conditional(3)
    labels = task.labels.copy()
    labels[[0, 2, 4]] = np.nan
    some = replace(task, labels=labels)
    if rows == 3:
        some = task.take(np.array([0, 1, 1, 2, 3, 3, 4, 5, 5]))
    with pytest.raises(InputError, match=r"2 examples need 2 sentence pairs .* Got 0\."):
        Shots(some, 2)


@pytest.mark.parametrize(
    ("task", "count", "message"),
    [
        (conditional(2), 4, r"train: 4 examples need 3 sentence pairs .* Got 2\. Ask for fewer"),
        (plain(2), 2, r"stsb: 2 examples need 3 labelled rows.* Got 2\."),
        (plain(2), -1, r"must not be negative\. Got -1"),
        (
            replace(plain(3), labels=np.full(3, np.nan, np.float32)),
            1,
            r"stsb: examples are shown with their labels, and no row has one",
        ),
    ],
)
def test_shots_too_few_or_bad_rows_raise_one_line(task: Task, count: int, message: str):
    with pytest.raises(InputError, match=message):
        Shots(task, count)
