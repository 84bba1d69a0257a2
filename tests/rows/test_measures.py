from __future__ import annotations

import numpy as np
import pytest

from condsim.rows.pairs import bag_of_words, read_stop_words, text_facts

TEXTS = [
    "A man rides a red bike down the street.",
    "The red bike is on the street by a man.",
    "Two dogs play",
    "the of and",
    "A man rides a red bike down the street.",
    "The man's dogs PLAY in the red, red water!",
]


def by_hand(one, two):
    """The definitions of A.2, text by text."""
    bags = bag_of_words(one, read_stop_words()), bag_of_words(two, read_stop_words())
    union = len(bags[0] | bags[1])
    words = sorted([len(one.split()), len(two.split())])
    return (
        len(bags[0] & bags[1]) / union if union else 0.0,
        words[0] / words[1],
        min(len(one), len(two)),
        one == two,
    )


def values(made, at):
    return (made.iou[at], made.length_ratio[at], made.min_length[at], made.same_text[at])


def test_iou_value_worked_by_hand():
    facts = text_facts(TEXTS)
    made = facts.product(slice(0, 1), np.array([1, 2, 3]), vectors=None)
    # {man, rides, red, bike, street} and {red, bike, street, man}: 4 of 5
    assert made.iou.tolist() == [[0.8, 0.0, 0.0]]
    assert made.length_ratio[0].tolist() == [9 / 10, 3 / 9, 3 / 9]
    assert made.min_length[0].tolist() == [39, 13, 10]


def test_product_equals_the_definitions():
    facts = text_facts(TEXTS)
    for rows in (slice(0, 3), slice(3, 6)):
        others = np.array([5, 4, 3, 2, 1, 0, 3])
        made = facts.product(rows, others, vectors=None)
        for row in range(3):
            for column, other in enumerate(others):
                expected = by_hand(TEXTS[rows.start + row], TEXTS[other])
                assert values(made, (row, column)) == expected


def test_paired_equals_the_product():
    facts = text_facts(TEXTS)
    vectors = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.array([0, 1, 5, 3, 2]), np.array([4, 5, 2, 3, 3])
    made = facts.paired(first, second, vectors=vectors)
    for place, (one, two) in enumerate(zip(first, second, strict=True)):
        alone = facts.product(slice(one, one + 1), np.array([two]), vectors=vectors)
        assert values(made, place) == values(alone, (0, 0))
        assert made.text_cosine[place] == pytest.approx(alone.text_cosine[0, 0], abs=1e-6)


def test_texts_of_stop_words_only_have_no_overlap():
    made = text_facts(["the of", "the of"]).paired(np.array([0]), np.array([1]), vectors=None)
    assert made.iou.tolist() == [0.0]
    assert made.same_text.tolist() == [True]


def test_bag_of_words_own_stop_words():
    bag = bag_of_words("The dog, the DOG's ball and 2 cats.", frozenset({"the", "and"}))
    assert bag == {"2", "ball", "cats", "dog", "dog's"}
    assert bag_of_words("Der Hund\u2019s Ball", frozenset({"der"})) == {"hund's", "ball"}
