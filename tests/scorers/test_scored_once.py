from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.scorers import Calibration, ScoredOnce, rescaled

ROWS = (("a", "b"), ("c", "d"), ("e", "f"))


class Counting:
    name, revision = "counting", "r1"
    calibration = Calibration(raw=(-1.0, 1.0), score=(0.0, 1.0))

    def __init__(self):
        self.passes = 0

    def score(self, sentences1, sentences2, conditions, *, scale="unit"):
        self.passes += 1
        raw = np.linspace(0, 1, len(sentences1), dtype=np.float32)
        return rescaled(raw, self.calibration, scale)


class Plain:
    name = "plain"

    def score(self, sentences1, sentences2, conditions):
        return [0.25] * len(sentences1)


@pytest.mark.parametrize("wraps", [1, 2])
def test_scored_once_gives_what_the_scorer_gives_in_one_pass(wraps):
    once = scorer = Counting()
    for _ in range(wraps):
        once = ScoredOnce(once)
    for scale in ("unit", "raw", "likert"):
        expected = Counting().score(*ROWS, scale=scale)
        np.testing.assert_array_equal(once.score(*ROWS, scale=scale), expected)
    assert scorer.passes == 1
    assert (once.name, once.revision, once.fitted_on) == ("counting", "r1", None)


def test_scored_once_other_rows_are_scored_anew():
    scorer = Counting()
    once = ScoredOnce(scorer)
    conditions = ["e", "f"]
    once.score(*ROWS[:2], conditions)
    conditions[0] = "changed"
    once.score(*ROWS[:2], conditions)
    once.score(*ROWS[:2], None)
    assert scorer.passes == 3


def test_scored_once_result_is_the_callers_own():
    once = ScoredOnce(Counting())
    once.score(*ROWS, scale="raw")[:] = 9
    assert once.score(*ROWS, scale="raw").max() == 1


def test_scored_once_plain_scorer_has_one_scale():
    once = ScoredOnce(Plain())
    assert once.score(*ROWS, scale="raw").tolist() == once.score(*ROWS).tolist() == [0.25, 0.25]


def test_scored_once_unknown_scale_is_an_error():
    with pytest.raises(InputError, match="Unknown scale 'rae'"):
        ScoredOnce(Plain()).score(*ROWS, scale="rae")
