"""Units and targets, and the groups they are computed in."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from condsim.contexts.generator.items import ItemBuilder, length_groups, ragged
from condsim.contexts.settings import GeneratorSettings

END, SEPARATOR = 2, 4
SENTENCES = {number: np.array([10 * number, 10 * number + 1]) for number in (1, 2, 3, 5, 6)}


def builder(*, joint: bool = False) -> ItemBuilder:
    settings = GeneratorSettings(encoder="joint" if joint else "apart")
    return ItemBuilder(SENTENCES, settings, SimpleNamespace(end_id=END, separator_id=SEPARATOR))


def test_add_apart_gives_a_unit_for_each_sentence_and_place():
    made = builder()
    assert made.add("centre", 3, (1, 2, 5, 6))
    assert [tokens.tolist() for tokens in made.units.tokens] == [
        [10, 11, END],
        [20, 21, END],
        [50, 51, END],
        [60, 61, END],
    ]
    assert [set(places) for places in made.units.places] == [{0}, {1}, {3}, {4}]
    assert made.items.units == [(0, 1, 2, 3)]
    assert made.items.targets[0].tolist() == [30, 31, END]


def test_add_tasks_of_one_context_share_units():
    made = builder()
    for task in ("centre", "left", "right"):
        made.add(task, 3, (1, 2, 5, 6))
    assert len(made.units) == 5  # four around, and the centre
    assert made.items.units == [(0, 1, 2, 3), (4, 2, 3), (0, 1, 4)]
    assert made.items.targets[1].tolist() == [10, 11, SEPARATOR, 20, 21, END]
    assert made.items.targets[2].tolist() == [50, 51, SEPARATOR, 60, 61, END]
    assert made.items.tasks == [0, 1, 2]


def test_add_joint_is_one_unit_of_all_given():
    made = builder(joint=True)
    made.add("left", 3, (1, 2, 5, -1))
    assert made.items.units == [(0,)]
    assert made.units.tokens[0].tolist() == [30, 31, END, 50, 51, END]
    assert made.units.places[0].tolist() == [2, 2, 2, 3, 3, 3]


def test_add_side_without_sentences_adds_nothing():
    made = builder()
    assert not made.add("left", 3, (-1, -1, 5, 6))
    assert len(made.items) == len(made.units) == 0
    assert made.add("right", 3, (-1, -1, 5, -1))
    assert made.items.targets[0].tolist() == [50, 51, END]


@pytest.mark.parametrize("joint", [False, True])
def test_add_nothing_given_has_a_unit_of_the_end_token(joint):
    made = builder(joint=joint)
    assert made.add("centre", 3, (-1, -1, -1, -1))
    assert made.units.tokens[0].tolist() == [END]
    assert made.units.places[0].tolist() == [2]


def test_ragged_fills_behind():
    values, inside = ragged([np.array([1]), np.array([2, 3, 4])], fill=9)
    assert values.tolist() == [[1, 9, 9], [2, 3, 4]]
    assert inside.tolist() == [[True, False, False], [True, True, True]]


def test_length_groups_hold_every_row_once_within_the_limit():
    lengths = np.random.default_rng(0).integers(1, 60, 500)
    groups = length_groups(lengths, call=100, most=600)
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(500))
    assert all(len(group) * lengths[group].max() <= 600 for group in groups)
    assert length_groups(np.array([], dtype=np.int64), call=1, most=9) == []
    assert [len(group) for group in length_groups(np.array([50]), call=1, most=9)] == [1]


def test_length_groups_cost_is_the_least_of_all_splits():
    lengths = np.array([3, 3, 4, 9, 9, 10, 30])

    def cost(groups):
        return sum(8 + len(group) * max(group) for group in groups)

    found = cost([lengths[group] for group in length_groups(lengths, call=8, most=10_000)])
    splits = [
        np.split(lengths, cuts)
        for count in range(7)
        for cuts in itertools.combinations(range(1, 7), count)
    ]
    assert found == min(map(cost, splits))
