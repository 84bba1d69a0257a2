from __future__ import annotations

import numpy as np
import pytest
from papers.suite.data import StsSet
from scipy import stats

from condsim.types import Task

SIZES = (20, 50, 30)


@pytest.fixture
def subsets():
    """Subsets of which the second is scored higher throughout, which only 'all' notices."""
    generator = np.random.default_rng(0)
    gold = [generator.uniform(0, 5, size) for size in SIZES]
    scores = [values + generator.normal(size=values.size) for values in gold]
    scores[1] = scores[1] + 10
    return scores, gold


def make_set(gold, aggregation):
    texts = tuple(map(str, range(sum(map(len, gold)))))
    labels = np.concatenate(gold).astype(np.float32)
    task = Task("sts", "0", texts, texts, None, labels, (0.0, 5.0))
    sizes = tuple(map(len, gold))
    return StsSet("sts", "STS", task, subsets=sizes, names=("a", "b", "c"), aggregation=aggregation)


def test_sts_set_aggregations_equal_scipy(subsets):
    scores, gold = subsets
    joined = np.concatenate(scores).astype(np.float32)
    each = [stats.spearmanr(*subset).statistic for subset in zip(scores, gold, strict=True)]
    together = stats.spearmanr(joined, np.concatenate(gold)).statistic
    expected = {"all": together, "mean": np.mean(each), "wmean": np.average(each, weights=SIZES)}
    for aggregation, value in expected.items():
        suite_set = make_set(gold, aggregation)
        assert suite_set.values(joined)[0] == pytest.approx(100 * value, abs=1e-4)
        draws = suite_set.draws([joined], resamples=20, seed=0)
        assert draws.shape == (1, 2, 20)
    assert together < min(expected["mean"], expected["wmean"])
