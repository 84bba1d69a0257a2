from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from condsim.errors import InputError
from condsim.evaluation.correlation import aggregate_spearman


@pytest.fixture
def subsets():
    generator = np.random.default_rng(0)
    gold = [generator.uniform(0, 5, size) for size in (20, 50, 30)]
    # the second subset is scored higher throughout, which 'all' sees and the means do not
    scores = [values + generator.normal(size=values.size) for values in gold]
    scores[1] = scores[1] + 10
    return scores, gold


def test_aggregate_spearman_equals_scipy(subsets):
    scores, gold = subsets
    each = [stats.spearmanr(*subset).statistic for subset in zip(scores, gold, strict=True)]
    together = stats.spearmanr(np.concatenate(scores), np.concatenate(gold)).statistic
    assert aggregate_spearman(scores, gold) == pytest.approx(together)
    assert aggregate_spearman(scores, gold, how="mean") == pytest.approx(np.mean(each))
    weighted = (20 * each[0] + 50 * each[1] + 30 * each[2]) / 100
    assert aggregate_spearman(scores, gold, how="wmean") == pytest.approx(weighted)
    assert together < min(np.mean(each), weighted)


@pytest.mark.parametrize("how", ["all", "mean", "wmean"])
def test_aggregate_spearman_one_subset_is_its_spearman(subsets, how):
    scores, gold = subsets
    expected = stats.spearmanr(scores[0], gold[0]).statistic
    assert aggregate_spearman(scores[:1], gold[:1], how=how) == pytest.approx(expected)


def test_aggregate_spearman_constant_subset_has_no_mean():
    scores, gold = [[1, 1], [1, 2]], [[1, 2], [1, 2]]
    assert math.isnan(aggregate_spearman(scores, gold, how="mean"))
    assert math.isnan(aggregate_spearman(scores, gold, how="wmean"))
    assert aggregate_spearman(scores, gold) > 0


@pytest.mark.parametrize(
    ("scores", "gold", "message"),
    [
        ([], [], "one at least"),
        ([[1, 2]], [[1, 2], [3]], "Got 1 and 2"),
        ([[1, 2, 3]], [[1, 2]], "must have one length"),
        ([[1, np.nan]], [[1, 2]], "must be finite"),
    ],
)
def test_aggregate_spearman_bad_input_raises(scores, gold, message):
    with pytest.raises(InputError, match=message):
        aggregate_spearman(scores, gold)


def test_aggregate_spearman_unknown_name_lists_the_near():
    with pytest.raises(InputError, match="Did you mean 'wmean' or 'mean'"):
        aggregate_spearman([[1, 2]], [[1, 2]], how="wmeen")
