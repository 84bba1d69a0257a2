"""What a criterion must gain before it is used: standard errors, and pairs that follow."""

import numpy as np
import pytest

from condsim.model.criterion import unit
from condsim.model.embedding import joined
from condsim.model.learned_figures import Pairs, area_under_curve, gain_error
from condsim.model.learned_pairs import _with_implied
from condsim.model.learned_values import _CAREFUL, _chosen_fit


def pairs_of(values):
    first, second = np.triu_indices(len(values), 1)
    return Pairs(first, second, values[first] == values[second])


def test_gain_error_is_near_the_bootstrap():
    generator = np.random.default_rng(0)
    texts = 60
    pairs = pairs_of(generator.integers(0, 3, texts))
    better, base = (
        (generator.normal(size=len(pairs.same)) + signal * pairs.same).astype(np.float32)
        for signal in (1, 0.3)
    )
    gains = []
    for _ in range(200):
        draws = np.bincount(generator.integers(0, texts, texts), minlength=texts)
        weights = (draws[pairs.first] * draws[pairs.second]).astype(np.float64)
        areas = [area_under_curve(scores, pairs.same, weights) for scores in (better, base)]
        gains.append(areas[0] - areas[1])
    assert gain_error(better, base, pairs, texts) == pytest.approx(np.std(gains), rel=0.35)
    assert gain_error(base, base, pairs, texts) == 0


def test_chosen_fit_of_random_values_stays_careful():
    generator = np.random.default_rng(1)
    for _ in range(5):
        vectors = generator.normal(size=(30, 16)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        fit = _chosen_fit(vectors, generator.integers(0, 3, 30), vectors[:3])
        assert (fit.strength, fit.weight) == _CAREFUL


def test_chosen_fit_is_compared_with_plain_scores():
    generator = np.random.default_rng(2)
    value_of = np.repeat([0, 1], 15)
    under = generator.normal(scale=0.3, size=(30, 8)) + np.eye(8)[value_of]
    without = generator.normal(size=(30, 8))
    under, without = (unit(vectors.astype(np.float32)) for vectors in (under, without))
    fit = _chosen_fit(joined(under, without, overall=0.3), value_of, under.repeat(2, axis=1)[:2])
    pairs = pairs_of(value_of)
    cosines = (under @ under.T)[pairs.first, pairs.second]
    assert fit.zero_shot == pytest.approx(area_under_curve(cosines, pairs.same), abs=1e-6)


def test_implied_pairs_follow_from_labels():
    labels = {(0, 1): True, (1, 2): True, (3, 4): True, (2, 3): False, (5, 6): False}
    first, second = np.array(list(labels)).T
    pairs = _with_implied(Pairs(first, second, np.array(list(labels.values()))), 7)
    found = {(int(one), int(other)): bool(same) for one, other, same in zip(*pairs, strict=True)}
    across = {(one, other): False for one in (0, 1, 2) for other in (3, 4)}
    assert found == labels | {(0, 2): True} | across


def test_implied_pairs_of_labels_that_contradict_are_none():
    pairs = Pairs(np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([True, True, False]))
    assert len(_with_implied(pairs, 3).same) == 3
