from __future__ import annotations

import math

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.statistics import (
    WEIGHTS_PER_BLOCK,
    bootstrap,
    p_value,
    percentile_interval,
    resample_weights,
    weighted_mean,
)


def mean_of(values):
    return lambda weights: weighted_mean(values, weights)


def test_resample_weights_rows_of_a_pair_are_drawn_together():
    clusters = np.array([4, 9, 4, 9, 7])
    weights = np.concatenate(list(resample_weights(clusters, resamples=50, seed=0)))
    assert weights.shape == (50, 5)
    assert (weights[:, 0] == weights[:, 2]).all()
    assert (weights[:, 1] == weights[:, 3]).all()
    # three clusters are drawn each time
    assert (weights[:, [0, 1, 4]].sum(axis=1) == 3).all()


def test_resample_weights_blocks_add_up_and_the_seed_decides():
    clusters = np.arange(WEIGHTS_PER_BLOCK // 10)
    blocks = list(resample_weights(clusters, resamples=25, seed=3))
    assert [len(block) for block in blocks] == [10, 10, 5]
    again = list(resample_weights(clusters, resamples=25, seed=3))
    other = list(resample_weights(clusters, resamples=25, seed=4))
    assert all((a == b).all() for a, b in zip(blocks, again, strict=True))
    assert not (blocks[0] == other[0]).all()


def test_bootstrap_of_a_mean_has_the_known_standard_error():
    values = np.random.default_rng(0).normal(size=400)
    draws = bootstrap(mean_of(values), np.arange(400), resamples=2000, seed=1)
    assert draws.shape == (2000,)
    # standard error of a mean: s / sqrt(n); 2000 resamples give it within a few percent
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.08)


def test_bootstrap_of_copied_rows_is_as_wide_as_of_single_ones():
    # Copying every row adds no information. The cluster bootstrap sees that; drawing single rows
    # would make the interval narrower by sqrt(2).
    values = np.random.default_rng(0).normal(size=200)
    single = bootstrap(mean_of(values), np.arange(200), resamples=500, seed=1)
    copied = bootstrap(
        mean_of(np.repeat(values, 2)), np.repeat(np.arange(200), 2), resamples=500, seed=1
    )
    np.testing.assert_allclose(single, copied, atol=1e-12)


def test_percentile_interval_hand_worked_value():
    # 0 .. 1000: the 2.5 and 97.5 percentiles are 25 and 975
    assert percentile_interval(np.arange(1001.0)) == pytest.approx((25.0, 975.0))


def test_percentile_interval_leaves_nan_out():
    assert percentile_interval(np.array([math.nan, 2.0, 2.0])) == (2.0, 2.0)
    assert all(math.isnan(end) for end in percentile_interval(np.array([math.nan])))


def test_p_value_hand_worked_values():
    # 97 above, 2 below, none equal: 2 * (1 + 2) / 100
    assert p_value(np.array([1.0] * 97 + [-1.0] * 2)) == pytest.approx(0.06)
    # no difference anywhere: every draw counts on both sides, cut to 1
    assert p_value(np.zeros(99)) == 1.0
    # never on the other side: 2 / (B + 1), and the sign plays no part
    assert p_value(np.full(99, -0.2)) == p_value(np.full(99, 0.2)) == pytest.approx(0.02)
    assert math.isnan(p_value(np.full(5, math.nan)))


def test_p_value_without_a_difference_is_uniform():
    # 200 samples of 60 differences with mean 0: about 5 % have p < 0.05
    generator = np.random.default_rng(0)
    rejected = 0
    for seed in range(200):
        values = generator.normal(size=60)
        draws = bootstrap(mean_of(values), np.arange(60), resamples=200, seed=seed)
        rejected += p_value(draws) < 0.05
    assert 2 <= rejected <= 22


def test_resample_weights_no_resamples_is_an_error():
    with pytest.raises(InputError, match=r"at least 1; got 0"):
        next(resample_weights(np.arange(3), resamples=0))
