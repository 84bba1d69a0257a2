from __future__ import annotations

import math

import numpy as np
import pytest

from condsim.evaluation.metrics import pair_accuracy, pair_wins


def test_pair_accuracy_ties_count_one_half():
    # in order, out of order, equal: (1 + 0 + .5) / 3
    scores = [0.9, 0.1, 0.2, 0.3, 0.5, 0.5]
    high, low = np.array([0, 2, 4]), np.array([1, 3, 5])
    assert pair_wins(scores, high=high, low=low).tolist() == [1.0, 0.0, 0.5]
    assert pair_accuracy(scores, high=high, low=low) == pytest.approx(0.5)


def test_pair_accuracy_no_pairs_is_nan():
    none = np.zeros(0, np.int64)
    assert math.isnan(pair_accuracy([0.1, 0.2], high=none, low=none))


def test_pair_accuracy_random_equals_naive():
    generator = np.random.default_rng(0)
    for _ in range(20):
        scores = generator.integers(4, size=30) / 4
        high, low = generator.permutation(30).reshape(2, 15)
        wins = 0.0
        for first, second in zip(high, low, strict=True):
            if scores[first] > scores[second]:
                wins += 1
            elif scores[first] == scores[second]:
                wins += 0.5
        assert pair_accuracy(scores, high=high, low=low) == pytest.approx(wins / 15)
