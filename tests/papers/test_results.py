from __future__ import annotations

import math
import statistics

import pytest
from papers.results import mean_interval, over_seeds

from condsim.evaluation.statistics import Metric


def test_mean_interval_three_values_by_hand():
    # mean 2, s = 1, t(2) = 4.3027: half width 4.3027 / sqrt(3) = 2.4841
    interval = mean_interval([1.0, 2.0, 3.0])
    assert (interval.low, interval.high) == pytest.approx((-0.4841, 4.4841), abs=1e-4)


def test_mean_interval_one_value_has_no_ends():
    assert math.isnan(mean_interval([1.5]).low)


def test_over_seeds_one_keeps_its_interval():
    found = over_seeds([Metric(60.0, 58.0, 62.0)], planned=3)
    assert (found.mean, found.std, found.low, found.high) == (60.0, None, 58.0, 62.0)


def test_over_seeds_more_have_a_deviation():
    found = over_seeds([Metric(value, 0.0, 99.0) for value in (60.0, 62.0, 67.0)], planned=3)
    assert found.mean == 63.0
    assert found.std == pytest.approx(statistics.stdev([60, 62, 67]))
    assert found.low is None


def test_over_seeds_none_or_nan_is_nothing():
    assert over_seeds([], planned=1) is None
    assert over_seeds([Metric(math.nan, math.nan, math.nan)], planned=1) is None
