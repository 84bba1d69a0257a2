from __future__ import annotations

import numpy as np
import pytest

from condsim.evaluation.metrics import METRICS, Metrics, pair_accuracy
from condsim.evaluation.statistics import (
    ResampledRanks,
    average_ranks,
    pearson,
    spearman,
    weighted_correlation,
    weighted_mean,
)


def drawn_rows(weights):
    # The sample that a row of weights stands for.
    return np.repeat(np.arange(weights.size), weights.astype(int))


def partial_spearman(x, y, given):
    xy, xz, yz = spearman(x, y), spearman(x, given), spearman(y, given)
    return (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))


def random_weights(generator, *, resamples, rows):
    return generator.integers(0, 4, size=(resamples, rows)).astype(np.float64)


def test_resampled_ranks_equal_ranks_of_the_repeated_rows(tied_samples):
    generator = np.random.default_rng(1)
    for x, _, _ in tied_samples:
        weights = random_weights(generator, resamples=10, rows=x.size)
        ranks = ResampledRanks(x)(weights)
        for row in range(10):
            rows = drawn_rows(weights[row])
            if rows.size:
                expected = average_ranks(x[rows])
                np.testing.assert_allclose(ranks[row][rows], expected - expected.mean(), atol=1e-12)


def test_weighted_correlation_equals_that_of_the_repeated_rows(tied_samples):
    generator = np.random.default_rng(2)
    for x, y, _ in tied_samples:
        weights = random_weights(generator, resamples=10, rows=x.size)
        weighted = weighted_correlation(x, y, weights)
        for row in range(10):
            rows = drawn_rows(weights[row])
            expected = pearson(x[rows], y[rows])
            assert weighted[row] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_weighted_mean_hand_worked_value():
    # (1 * 2 + 3 * 1) / 3, and no row at all
    weights = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    mean = weighted_mean(np.array([1.0, 3.0, 9.0]), weights)
    np.testing.assert_allclose(mean, [5 / 3, np.nan])


def test_metrics_resamples_equal_the_metrics_of_the_repeated_rows():
    generator = np.random.default_rng(5)
    gold = generator.integers(0, 5, size=60) / 4
    scores, given = generator.normal(size=(2, 60)).round(1)
    high = np.array([row for row in range(0, 60, 2) if gold[row] != gold[row + 1]])
    low = high + 1
    swap = gold[high] < gold[low]
    high, low = np.where(swap, low, high), np.where(swap, high, low)
    pair_weights = random_weights(generator, resamples=20, rows=30)
    weights = np.repeat(pair_weights, 2, axis=1)  # rows 2k and 2k + 1 are drawn together
    metrics = Metrics([scores, given], gold=gold, control=given, high=high, low=low)
    values = metrics(weights)
    for row in range(20):
        rows = drawn_rows(weights[row])
        x, y, z = scores[rows], gold[rows], given[rows]
        drawn_pairs = np.repeat(np.arange(high.size), weights[row][high].astype(int))
        expected = [
            100 * spearman(x, y),
            100 * pearson(x, y),
            np.mean((x - y) ** 2),
            100 * pair_accuracy(scores, high=high[drawn_pairs], low=low[drawn_pairs]),
            100 * partial_spearman(x, y, z),
        ]
        np.testing.assert_allclose(values[0, :, row], expected, atol=1e-9)
    assert np.isnan(values[1, list(METRICS).index("partial_spearman")]).all()


def test_metrics_constant_scores_have_no_correlation_and_half_the_pairs():
    constant, gold = np.full(4, 0.7), np.array([0.0, 0.5, 1.0, 0.25])
    high, low = np.array([1, 2]), np.array([0, 3])
    values = Metrics([constant], gold=gold, control=gold[::-1], high=high, low=low).point()[0]
    by_name = dict(zip(METRICS, values, strict=True))
    assert np.isnan(by_name["spearman"])
    assert np.isnan(by_name["pearson"])
    assert np.isnan(by_name["partial_spearman"])
    assert by_name["pair_accuracy"] == 50.0
    # (.49 + .04 + .09 + .2025) / 4
    assert by_name["mse"] == pytest.approx(0.205625)
