from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from condsim.errors import InputError
from condsim.evaluation.metrics import Metrics
from condsim.evaluation.statistics import average_ranks, pearson, spearman


def naive_ranks(values):
    ranks = []
    for value in values:
        below = sum(other < value for other in values)
        equal = sum(other == value for other in values)
        ranks.append(below + (equal + 1) / 2)
    return ranks


def naive_pearson(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    variance_x = sum((a - mean_x) ** 2 for a in x)
    variance_y = sum((b - mean_y) ** 2 for b in y)
    if variance_x < 1e-15 or variance_y < 1e-15:
        return math.nan
    return covariance / math.sqrt(variance_x * variance_y)


def partial_spearman(x, y, given):
    x, y, given = (np.asarray(values, np.float64) for values in (x, y, given))
    metrics = Metrics([x], gold=y, control=given, names=["partial_spearman"])
    return metrics.point()[0, 0] / 100


def naive_partial_spearman(x, y, given):
    # The definition: regress the ranks of `given` out of both, correlate what is left.
    x, y, given = (np.asarray(naive_ranks(values)) for values in (x, y, given))
    design = np.stack([np.ones(len(given)), given], axis=1)
    left_x = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
    left_y = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return naive_pearson(left_x, left_y)


def test_average_ranks_ties_share_the_mean_rank():
    # sorted: 1 3 3 5; the two 3s hold ranks 2 and 3
    assert average_ranks([3, 1, 3, 5]).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_average_ranks_random_equals_naive(tied_samples):
    for x, _, _ in tied_samples:
        assert average_ranks(x).tolist() == naive_ranks(x.tolist())


def test_pearson_hand_worked_value():
    # deviations x: -1 0 1, y: -1 -1 2; covariance 3, variances 2 and 6: 3 / sqrt(12)
    assert pearson([1, 2, 3], [1, 1, 4]) == pytest.approx(3 / math.sqrt(12), abs=1e-15)


def test_spearman_hand_worked_value_with_ties():
    # ranks x: 1 2 3 4, y: 1.5 1.5 4 3; deviations x: -1.5 -.5 .5 1.5, y: -1 -1 1.5 .5
    # covariance 1.5 + .5 + .75 + .75 = 3.5, variances 5 and 4.5
    assert spearman([0.1, 0.2, 0.3, 0.4], [2, 2, 5, 4]) == pytest.approx(
        3.5 / math.sqrt(22.5), abs=1e-15
    )


def test_partial_spearman_hand_worked_value():
    # ranks x: 1 2 3 4, y: 2 1 4 3, z: 1 3 2 4; r_xy = .6, r_xz = .8, r_yz = 0
    # (.6 - 0) / sqrt((1 - .64) (1 - 0)) = 1
    assert partial_spearman([1, 2, 3, 4], [2, 1, 4, 3], [1, 3, 2, 4]) == pytest.approx(1.0)


def test_correlations_random_equal_naive(tied_samples):
    for x, y, z in tied_samples:
        expected = naive_pearson(x.tolist(), y.tolist())
        assert pearson(x, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)
        expected = naive_pearson(naive_ranks(x), naive_ranks(y))
        assert spearman(x, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)
        if not math.isnan(expected):
            partial = partial_spearman(x, y, z)
            expected = naive_partial_spearman(x, y, z)
            assert partial == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_correlations_random_equal_scipy():
    generator = np.random.default_rng(3)
    x = generator.normal(size=500).astype(np.float32)
    y = generator.integers(1, 6, size=500)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(x, y) == pytest.approx(
        stats.pearsonr(x.astype(np.float64), y).statistic, abs=1e-12
    )


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_correlation_constant_is_nan(correlation):
    assert math.isnan(correlation([0.1, 0.1, 0.1], [1, 2, 3]))
    assert math.isnan(correlation([1, 2, 3], [0.7, 0.7, 0.7]))
    assert math.isnan(correlation([1], [1]))
    assert math.isnan(correlation([], []))


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e150])
def test_pearson_scale_and_shift_change_nothing(scale):
    x, y = np.array([0.2, 0.5, 0.1, 0.9]), np.array([1.0, 2.0, 2.0, 5.0])
    assert pearson(scale * x, y) == pytest.approx(pearson(x, y), abs=1e-12)
    assert pearson(-scale * x, y) == pytest.approx(-pearson(x, y), abs=1e-12)


def test_partial_spearman_constant_given_is_the_plain_spearman():
    x, y = [1, 2, 3, 4], [2, 1, 3, 4]
    assert partial_spearman(x, y, [5, 5, 5, 5]) == pytest.approx(spearman(x, y))


def test_partial_spearman_given_the_same_order_is_nan():
    x, y = [1, 2, 3, 4], [2, 1, 3, 4]
    assert math.isnan(partial_spearman(x, y, [10, 20, 30, 40]))
    assert math.isnan(partial_spearman(x, y, [4, 3, 2, 1]))


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2], [1, 2, 3]), ([1, math.nan, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])]
)
def test_correlation_bad_vectors_are_an_error(x, y):
    for correlation in (pearson, spearman):
        with pytest.raises(InputError, match="A correlation needs"):
            correlation(x, y)
