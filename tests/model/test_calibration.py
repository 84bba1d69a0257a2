from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.isotonic import IsotonicRegression

from condsim.errors import InputError, ModelError
from condsim.model.calibration import UNCALIBRATED, Calibration, fit_calibration


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    raw = random.uniform(-0.2, 0.95, 800).astype(np.float32)
    noise = random.normal(0, 0.2, 800)
    gold = np.clip(np.round(4 * (np.clip(raw, 0, 1) ** 2 + noise)) / 4, 0, 1)
    return raw, gold


def test_calibration_apply_interpolates_by_hand():
    calibration = Calibration(raw=(-1.0, 0.0, 1.0), score=(0.0, 0.25, 1.0))
    # Halfway between 0 and 1: (0.25 + 1) / 2; beyond the ends: the ends.
    scores = calibration.apply([-2, -1, 0, 0.5, 1, 2])
    np.testing.assert_allclose(scores, [0, 0, 0.25, 0.625, 1, 1])
    assert scores.dtype == np.float32


@pytest.mark.parametrize(
    ("raw", "score"),
    [
        *((raw, (0, 1)) for raw in [(0,), (0, 0), (1, 0), (0, float("nan"))]),
        *(((0, 1), score) for score in [(-0.1, 1), (0, 1.1), (0, 0.5, 1)]),
    ],
)
def test_calibration_knots_not_increasing_or_outside_unit_refused(raw, score):
    with pytest.raises(ModelError, match="two or more increasing finite numbers"):
        Calibration(raw=raw, score=score)


def test_calibration_lowest_raw_is_the_first_that_reaches_the_score():
    calibration = Calibration((-1.0, 0.5, 1.0), (0.0, 0.2, 0.9))
    # 0.55 lies half way from 0.2 to 0.9, so at half way from 0.5 to 1.
    raw = calibration.lowest_raw(0.55)
    assert raw == pytest.approx(0.75, abs=1e-6)
    assert calibration.apply(raw) >= np.float32(0.55) > calibration.apply(np.nextafter(raw, 0))
    assert calibration.lowest_raw(0.0) == -1.0
    assert calibration.lowest_raw(0.95) == np.inf


def test_uncalibrated_keeps_positive_cosines_and_all_ranks():
    raw = np.linspace(-1, 1, 101)
    scores = UNCALIBRATED.apply(raw)
    assert (np.diff(scores) > 0).all()
    np.testing.assert_allclose(scores[50:], raw[50:], atol=0.0011)


def test_fit_calibration_strictly_increasing_in_unit_with_ends_tied(rows):
    calibration = fit_calibration(*rows)
    scores = calibration.apply(np.linspace(-1, 1, 2001))
    assert (np.diff(scores) > 0).all()
    assert scores[0] == 0
    assert scores[-1] == 1


def test_fit_calibration_spearman_unchanged(rows):
    raw, gold = rows
    scores = fit_calibration(raw, gold).apply(raw)
    assert spearmanr(scores, gold)[0] == pytest.approx(spearmanr(raw, gold)[0], abs=1e-6)
    assert len(np.unique(scores)) == len(np.unique(raw))


def test_fit_calibration_error_near_isotonic_regression(rows):
    raw, gold = rows
    best = IsotonicRegression().fit(raw, gold).predict(raw)
    fitted = fit_calibration(raw, gold).apply(raw)
    assert ((fitted - gold) ** 2).mean() < (
        (best - gold) ** 2
    ).mean() * 1.1  # in sample, it overfits
    assert ((fitted - gold) ** 2).mean() < ((raw - gold) ** 2).mean()


def test_fit_calibration_two_bins_by_hand():
    # Bins {0, 0.2} and {0.6, 0.8}: centers 0.1, 0.7 and means 0.25, 0.75, then 2 % of the straight
    # line from (-1, 0) to (1, 1): 0.98 * 0.25 + 0.02 * 0.55 and 0.98 * 0.75 + 0.02 * 0.85.
    calibration = fit_calibration([0, 0.2, 0.6, 0.8], [0, 0.5, 0.5, 1], knots=2)
    np.testing.assert_allclose(calibration.raw, [-1, 0.1, 0.7, 1])
    np.testing.assert_allclose(calibration.score, [0, 0.256, 0.752, 1])


def test_fit_calibration_falling_labels_pooled():
    calibration = fit_calibration([0, 0.2, 0.6, 0.8], [1, 0.5, 0.5, 0], knots=4)
    np.testing.assert_allclose(calibration.raw, [-1, 0, 0.2, 0.6, 0.8, 1])
    np.testing.assert_allclose(calibration.score[1:-1], [0.5, 0.502, 0.506, 0.508])


def test_fit_calibration_equal_labels_still_rise():
    # The line through all has slope 1.2, so that the labels 0.4, 0.4 become 0.37 and 0.43.
    calibration = fit_calibration([0, 0.2, 0.4, 0.6], [0, 0.4, 0.4, 0.8], knots=4)
    fitted = [0, 0.37, 0.43, 0.8]
    line = [0.02 * (1 + raw) / 2 for raw in calibration.raw[1:-1]]
    np.testing.assert_allclose(calibration.score[1:-1], 0.98 * np.array(fitted) + line)


@pytest.mark.parametrize("raw", [[0.3], [0.3, 0.3, 0.3], [-1.0, 1.0], [-3.0, 0.0, 4.0]])
def test_fit_calibration_few_equal_or_far_values_strictly_increasing(raw):
    calibration = fit_calibration(raw, np.linspace(0, 1, len(raw)))
    assert (np.diff(calibration.apply(np.unique(raw))) > 0).all()


@pytest.mark.parametrize(
    ("raw", "gold", "knots", "message"),
    [
        ([], [], 4, "needs rows"),
        ([0.1], [0.1, 0.2], 4, "one finite raw similarity"),
        ([0.1, np.nan], [0, 1], 4, "finite"),
        ([0.1, 0.2], [1, 5], 4, r"a gold one in \[0, 1\]"),
        ([0.1, 0.2], [0, 1], 0, "'knots'"),
    ],
)
def test_fit_calibration_bad_input_refused(raw, gold, knots, message):
    with pytest.raises(InputError, match=message):
        fit_calibration(raw, gold, knots=knots)


def test_fit_calibration_gives_equal_texts_the_highest_score(rows):
    raw, gold = rows
    calibration = fit_calibration([*raw, 1.0, 1.0], [*gold, 0.75, 1.0])
    assert (calibration.raw[-1], calibration.score[-1]) == (1.0, 1.0)
    assert fit_calibration([1.0], [0.5]).apply([-1.0, 1.0]).tolist() == [0.0, 1.0]
