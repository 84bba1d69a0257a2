from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.metrics import OverEstimation, over_estimation
from condsim.evaluation.report import Report, over_estimation_table, to_markdown
from condsim.model.base import rescaled
from condsim.model.calibration import Calibration

CALIBRATION = Calibration(raw=(-1.0, 0.0, 1.0), score=(0.4, 0.5, 0.6))


class RawScorer:
    """Has two scales, as the models of condsim have; counts its passes over the data."""

    name = "raw"
    calibration = CALIBRATION

    def __init__(self, scores):
        self.passes = 0
        self._raw = np.asarray(scores, np.float32)

    def score(self, sentences1, sentences2, conditions, *, scale="unit"):
        self.passes += 1
        return rescaled(self._raw, self.calibration, scale)


def test_over_estimation_by_hand(make_task):
    # labels 4 3 | 2 4 | 3 2 | 5 1 | 3 3 | 4 2, gold .75 .5 | .25 .75 | .5 .25 | 1 0 | tie | .75 .25
    labels = [4, 3, 2, 4, 3, 2, 5, 1, 3, 3, 4, 2]
    scores = [
        *(1.125, 0.375),  # high +.375 > .25, low -.125 < 0: Eq. 16 only
        *(-0.125, 0.875),  # low first: low -.375 beyond .25, high +.125 > 0: Eq. 17 only
        *(1.0, -0.25),  # high +.5, low -.5: both, counted once
        *(0.5, 0.5),  # high -.5, low +.5: neither
        *(1.0, -1.0),  # equal labels: no pair
        *(1.25, 0.25),  # high +.5, but low 0 is not below gold: neither
    ]
    found = over_estimation(scores, make_task(labels))
    # high: (.375 + .125 + .5 - .5 + .5) / 5 = .2; low: (-.125 - .375 - .5 + .5 + 0) / 5 = -.1
    assert found == OverEstimation(
        pairs=5,
        equation_16=2,
        equation_17=2,
        either=3,
        high_error=pytest.approx(0.2),
        low_error=pytest.approx(-0.1),
        margin=0.25,
    )
    assert found.rate == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [
        # gold .5 and .25
        (0.75, 0.0, (0, 0, 0)),  # +.25 and -.25 exactly: neither
        (np.nextafter(np.float32(0.75), np.float32(1)), 0.0, (1, 0, 1)),
        (0.75, -1e-7, (0, 1, 1)),
        (0.875, 0.25, (0, 0, 0)),  # the low row is right: not below its label
        (0.5, -0.25, (0, 0, 0)),  # the high row is right: not above its label
        (0.875, 0.3, (0, 0, 0)),  # both too high
    ],
)
def test_over_estimation_boundary_does_not_count(make_task, high, low, expected):
    found = over_estimation(np.array([high, low], np.float32), make_task([3, 2]))
    assert (found.equation_16, found.equation_17, found.either) == expected


def test_over_estimation_three_rows_of_one_pair_are_three_pairs(make_task):
    task = replace(make_task([5, 3, 1]), sentences1=("A lamp.",) * 3, sentences2=("A bulb.",) * 3)
    # gold 1 .5 0; scores off by +.1 +.1 -.3. (5, 3): low too high; (5, 1): Eq. 17; (3, 1): Eq. 17
    found = over_estimation([1.1, 0.6, -0.3], task)
    assert (found.pairs, found.equation_16, found.equation_17, found.either) == (3, 0, 2, 2)
    # each pair counts: high (.1 + .1 + .1) / 3, low (.1 - .3 - .3) / 3
    assert found.high_error == pytest.approx(0.1)
    assert found.low_error == pytest.approx(-0.5 / 3)


def test_over_estimation_unlabeled_rows_may_have_any_score(make_task):
    task = make_task([3, 2, math.nan, 4])
    found = over_estimation([0.9, 0.2, math.nan, 5.0], task)
    assert (found.pairs, found.either) == (1, 1)


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([3, 3, 2, 2], np.zeros(4), "none among 4 labeled rows"),
        ([3, math.nan, 2, math.nan], np.zeros(4), "none among 2 labeled rows"),
        ([3, 2], np.zeros(3), "one score for each row"),
        ([3, 2, 5, 1], [0.1, 0.2, 0.3, math.inf], "finite"),
    ],
)
def test_over_estimation_bad_input_is_an_error(make_task, labels, scores, message):
    with pytest.raises(InputError, match=message):
        over_estimation(scores, make_task(labels))


def test_evaluate_over_estimation_counts_raw_scores_in_one_pass(make_task):
    task = make_task([4, 3, 5, 1])
    raw = [1.125, 0.375, 0.5, 0.5]  # calibrated, all lie from .5 to .6: nothing would be counted
    scorer = RawScorer(raw)
    report = evaluate(scorer, task, resamples=5, over_estimation=True)
    assert scorer.passes == 1
    assert report.model.over_estimation == over_estimation(raw, task)
    assert report.model.over_estimation.either == 1
    plain = evaluate(RawScorer(raw), task, resamples=5)
    assert plain.model.over_estimation is None
    assert plain.model.metrics == report.model.metrics


def test_report_with_over_estimation_round_trip_and_tables(make_task, tmp_path):
    report = evaluate(
        RawScorer([1.125, 0.375, 0.5, 0.5]), make_task([4, 3, 5, 1]), over_estimation=True
    )
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json").model == report.model
    # one of two pairs; high (.375 - .5) / 2 = -.0625, low (-.125 + .5) / 2 = .1875
    assert "| **raw** | 1 | 0 | 1 | 50.0 | -0.062 | +0.188 |" in to_markdown(report).splitlines()
    assert over_estimation_table(report).row_count == 2
