"""Checks the calibration error against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from papers.domains import calibration_error

from condsim.errors import InputError


def test_two_bins_by_hand() -> None:
    # Bins {0.0, 0.2} and {0.8, 1.0}: mean scores 0.1 and 0.9, mean labels 0 and 0.8, in any order.
    scores, gold = [1.0, 0.0, 0.8, 0.2], [0.6, 0.0, 1.0, 0.0]
    assert calibration_error(scores, gold, bins=2) == pytest.approx(0.1)
    # One bin: the mean score is 0.5, the mean label 0.4; four bins: 0.4, 0, 0.2, 0.2.
    assert calibration_error(scores, gold, bins=1) == pytest.approx(0.1)
    assert calibration_error(scores, gold, bins=9) == pytest.approx(0.2)


def test_perfect_scores_have_no_error() -> None:
    values = np.linspace(0, 1, 100)
    assert calibration_error(values, values) == pytest.approx(0.0)


def test_no_rows_have_no_error_to_tell() -> None:
    assert math.isnan(calibration_error([], []))


@pytest.mark.parametrize(("gold", "bins"), [([1.0], 10), ([1.0, 0.0], 0)])
def test_unequal_lengths_or_no_bin_are_one_clear_line(gold: list[float], bins: int) -> None:
    with pytest.raises(InputError, match="as many labels as scores, and one bin or more"):
        calibration_error([0.5, 0.5], gold, bins=bins)


@pytest.mark.parametrize("gold", [[0, 0, 1, 1], [0, 1, 0, 1]])
def test_equal_scores_share_their_labels_whatever_their_order(gold: list[float]) -> None:
    assert calibration_error([0.5] * 4, gold, bins=2) == pytest.approx(0.0)
