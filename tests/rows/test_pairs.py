"""Measures of sentence pairs against their definitions, and the filters on them."""

from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.rows.pairs import (
    FilterCounts,
    FilterSettings,
    Measures,
    bag_of_words,
    read_stop_words,
    text_facts,
)

TEXTS = [
    "A man rides a red bike down the street.",
    "The red bike is on the street by a man.",
    "Two dogs play",
    "the of and",
    "A man rides a red bike down the street.",
    "The man's dogs PLAY in the red, red water!",
]


def by_definition(text1, text2):
    """The definitions of A.2, text by text."""
    bags = bag_of_words(text1, read_stop_words()), bag_of_words(text2, read_stop_words())
    union = len(bags[0] | bags[1])
    words = sorted([len(text1.split()), len(text2.split())])
    return (
        len(bags[0] & bags[1]) / union if union else 0.0,
        words[0] / words[1],
        min(len(text1), len(text2)),
        text1 == text2,
    )


def values(measures, at):
    return (
        measures.iou[at],
        measures.length_ratio[at],
        measures.min_length[at],
        measures.same_text[at],
    )


def test_iou_value_worked_by_hand():
    measures = text_facts(TEXTS).product(slice(0, 1), np.array([1, 2, 3]), vectors=None)
    # {man, rides, red, bike, street} and {red, bike, street, man}: 4 of 5
    assert measures.iou.tolist() == [[0.8, 0.0, 0.0]]
    assert measures.length_ratio[0].tolist() == [9 / 10, 3 / 9, 3 / 9]
    assert measures.min_length[0].tolist() == [39, 13, 10]


def test_product_and_pairs_equal_the_definitions():
    facts = text_facts(TEXTS)
    vectors = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    columns = np.array([5, 4, 3, 2, 1, 0, 3])
    for rows in (slice(0, 3), slice(3, 6)):
        product = facts.product(rows, columns, vectors=vectors)
        for row in range(3):
            first = np.full(len(columns), rows.start + row)
            paired = facts.paired(first, columns, vectors=vectors)
            np.testing.assert_allclose(paired.text_cosine, product.text_cosine[row], atol=1e-6)
            for place, column in enumerate(columns):
                expected = by_definition(TEXTS[rows.start + row], TEXTS[column])
                assert values(product, (row, place)) == values(paired, place) == expected


def test_bag_of_words_own_stop_words():
    bag = bag_of_words("The dog, the DOG's ball and 2 cats.", frozenset({"the", "and"}))
    assert bag == {"2", "ball", "cats", "dog", "dog's"}
    assert bag_of_words("Der Hund\u2019s Ball", frozenset({"der"})) == {"hund's", "ball"}


def test_filters_bounds_themselves_pass_and_each_rejection_is_counted():
    # Each pair but the first and last breaks one rule; the last breaks two.
    measures = Measures(
        same_text=np.array([False, True, False, False, False, False]),
        iou=np.array([0.2, 0.2, 0.21, 0.1, 0.1, 0.5]),
        text_cosine=np.array([0.4, 0.9, 0.5, 0.39, 0.5, 0.5], np.float32),
        length_ratio=np.array([0.7, 1, 1, 1, 0.69, 1]),
        min_length=np.array([48, 60, 60, 60, 60, 47]),
    )
    counts = FilterCounts()
    settings = FilterSettings(max_iou=0.2, min_length_ratio=0.7, min_length=48)
    assert counts.keep(measures, settings).tolist() == [True, False, False, True, False, False]
    assert counts.to_dict() == {
        "pairs": 6,
        "same_text": 1,
        "max_iou": 2,
        "min_text_cosine": 0,
        "min_length_ratio": 1,
        "min_length": 1,
        "passed": 2,
    }
    counts.add(counts)
    assert counts.pairs == 12
    passing = counts.keep(measures, FilterSettings(min_text_cosine=0.4))
    assert passing.tolist() == [True, False, True, False, True, True]


@pytest.mark.parametrize(
    ("bound", "value"),
    [("max_iou", 1.5), ("min_text_cosine", -2), ("min_length_ratio", float("nan"))],
)
def test_filters_bound_out_of_range_refused(bound, value):
    with pytest.raises(InputError, match=f"'{bound}' must be"):
        FilterSettings(**{bound: value})
