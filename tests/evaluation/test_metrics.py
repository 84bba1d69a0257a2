from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from condsim.data.nli_triplets import Triplets
from condsim.errors import InputError, ModelError
from condsim.evaluation.evaluate import triplet_accuracy
from condsim.evaluation.metrics import METRICS, Metrics, auroc, pair_accuracy, pair_wins
from condsim.evaluation.statistics import (
    WEIGHTS_PER_BLOCK,
    ResampledRanks,
    bootstrap,
    p_value,
    percentile_interval,
    resample_weights,
    spearman,
    weighted_correlation,
    weighted_mean,
)
from condsim.model.baselines import baseline


def partial_spearman(x, y, given):
    x, y, given = (np.asarray(values, np.float64) for values in (x, y, given))
    metrics = Metrics([x], gold=y, control=given, names=["partial_spearman"])
    return metrics.point()[0, 0] / 100


def pearson(x, y):
    """By numpy; NaN where it does not exist."""
    exists = len(x) > 1 and np.ptp(x) and np.ptp(y)
    return np.corrcoef(x, y)[0, 1] if exists else math.nan


def test_spearman_hand_worked_value_with_ties():
    # ranks x: 1 2 3 4, y: 1.5 1.5 4 3; deviations x: -1.5 -.5 .5 1.5, y: -1 -1 1.5 .5
    # covariance 1.5 + .5 + .75 + .75 = 3.5, variances 5 and 4.5
    assert spearman([0.1, 0.2, 0.3, 0.4], [2, 2, 5, 4]) == pytest.approx(3.5 / math.sqrt(22.5))


def test_partial_spearman_hand_worked_value():
    # ranks x: 1 2 3 4, y: 2 1 4 3, z: 1 3 2 4; r_xy = .6, r_xz = .8, r_yz = 0
    # (.6 - 0) / sqrt((1 - .64) (1 - 0)) = 1
    assert partial_spearman([1, 2, 3, 4], [2, 1, 4, 3], [1, 3, 2, 4]) == pytest.approx(1.0)


def test_spearman_random_equals_scipy():
    generator = np.random.default_rng(3)
    x = generator.normal(size=500).astype(np.float32)
    y = generator.integers(1, 6, size=500)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_spearman_constant_or_short_is_nan():
    for x, y in (([0.1] * 3, [1, 2, 3]), ([1, 2, 3], [0.7] * 3), ([1], [1]), ([], [])):
        assert math.isnan(spearman(x, y))


def test_partial_spearman_given_a_constant_or_the_same_order():
    x, y = [1, 2, 3, 4], [2, 1, 3, 4]
    assert partial_spearman(x, y, [5, 5, 5, 5]) == pytest.approx(spearman(x, y))
    for same_order in ([10, 20, 30, 40], [4, 3, 2, 1]):
        assert math.isnan(partial_spearman(x, y, same_order))


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2], [1, 2, 3]), ([1, math.nan, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])]
)
def test_spearman_bad_vectors_are_an_error(x, y):
    with pytest.raises(InputError, match="A correlation needs"):
        spearman(x, y)


def drawn_rows(weights):
    # The sample that a row of weights stands for.
    return np.repeat(np.arange(weights.size), weights.astype(int))


def partial_by_formula(x, y, given):
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
                expected = stats.rankdata(x[rows])
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
            100 * partial_by_formula(x, y, z),
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
    with pytest.raises(InputError, match=r"3 of 3 are positive"):
        auroc(np.arange(3.0), np.ones(3, bool), np.arange(3))


def test_auroc_equals_naive_loop_and_interval_holds_it():
    generator = np.random.default_rng(0)
    scores = generator.integers(5, size=80).astype(float)
    positive = generator.random(80) < 0.3
    figure = auroc(scores, positive, np.arange(80) // 2)
    assert figure.value == pytest.approx(naive(scores, positive), abs=1e-12)
    assert figure.low < figure.value < figure.high


def test_pair_accuracy_ties_count_one_half_and_no_pairs_are_nan():
    # in order, out of order, equal: (1 + 0 + .5) / 3
    scores = [0.9, 0.1, 0.2, 0.3, 0.5, 0.5]
    high, low = np.array([0, 2, 4]), np.array([1, 3, 5])
    assert pair_wins(scores, high=high, low=low).tolist() == [1.0, 0.0, 0.5]
    assert pair_accuracy(scores, high=high, low=low) == pytest.approx(0.5)
    assert math.isnan(pair_accuracy(scores, high=high[:0], low=low[:0]))


TRIPLETS = Triplets(
    "x",
    "0",
    ("red dog runs", "blue car stops", "green tree", "old man"),
    ("red dog sits", "a train", "green leaf", "old woman"),
    ("blue car", "blue car waits", "red sea", "old hat"),
)


class Fixed:
    name = "fixed"

    def __init__(self, scores):
        self.scores = np.asarray(scores, np.float32)

    def score(self, sentences1, sentences2, conditions):
        return self.scores


def test_triplet_accuracy_hand_worked_equals():
    # word overlap: right, wrong, right; "old" is shared with both: equal, so wrong
    found = triplet_accuracy(baseline("word-overlap"), TRIPLETS, resamples=500)
    assert found.value == 50
    assert 0 <= found.low < 50 < found.high <= 100
    assert found == triplet_accuracy(baseline("word-overlap"), TRIPLETS, resamples=500)
    assert triplet_accuracy(Fixed([0.5] * 8), TRIPLETS, resamples=5).value == 0


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1, 2], r"fixed: score must return one number for each row, \(8,\)"),
        ([np.nan] * 8, r"fixed: every score must be a finite number; got nan for row 1 "),
    ],
)
def test_triplet_accuracy_scorer_that_fails_named(scores, message):
    with pytest.raises(ModelError, match=message):
        triplet_accuracy(Fixed(scores), TRIPLETS)


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
    with pytest.raises(InputError):
        next(resample_weights(np.arange(3), resamples=0))


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


def test_percentile_interval_hand_worked_values():
    # 0 .. 1000: the 2.5 and 97.5 percentiles are 25 and 975; NaN is left out.
    assert percentile_interval(500.0, np.arange(1001.0)) == pytest.approx((25.0, 975.0))
    assert percentile_interval(2.0, np.array([math.nan, 2.0, 2.0])) == (2.0, 2.0)
    assert all(math.isnan(end) for end in percentile_interval(math.nan, np.array([math.nan])))
    assert percentile_interval(990.0, np.arange(1001.0))[1] == 990.0


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
