from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.metrics import auroc


def naive(scores, positive):
    """Share of pairs in the right order, ties half."""
    above = [
        (one > zero) + (one == zero) / 2 for one in scores[positive] for zero in scores[~positive]
    ]
    return np.mean(above)


def test_auroc_worked_by_hand():
    # Positives 3 and 1, negatives 2 and 1: 3 > 2, 3 > 1, 1 < 2, 1 = 1: (1 + 1 + 0 + 0.5) / 4.
    figure = auroc(np.array([3, 1, 2, 1.0]), np.array([1, 1, 0, 0], bool), np.arange(4))
    assert figure.value == 0.625


def test_auroc_equals_naive_loop_and_interval_holds_it():
    generator = np.random.default_rng(0)
    scores = generator.integers(5, size=80).astype(float)
    positive = generator.random(80) < 0.3
    figure = auroc(scores, positive, np.arange(80) // 2)
    assert figure.value == pytest.approx(naive(scores, positive), abs=1e-12)
    assert figure.low < figure.value < figure.high


def test_auroc_one_kind_refused():
    with pytest.raises(InputError, match=r"3 of 3 are positive"):
        auroc(np.arange(3.0), np.ones(3, bool), np.arange(3))
