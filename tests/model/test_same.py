from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.model.base import PairScorer
from condsim.model.calibration import Calibration


class WordScorer(PairScorer):
    """0.7 where the condition is in both sentences, else 0.1."""

    def __init__(self):
        self.scored = 0

    def _score_rows(self, rows, scale):
        self.scored += len(rows)
        triples = zip(*rows.sentences, rows.conditions, strict=True)
        return np.array([0.7 if c in a and c in b else 0.1 for a, b, c in triples], np.float32)


def test_same_pair_needs_every_condition():
    scorer = WordScorer()
    assert scorer.same("on lamp", "lamp on", ["on", "lamp"], at_least=0.7) is True
    assert scorer.same("on lamp", "lamp off", ["on", "lamp"], at_least=0.7) is False
    assert scorer.same("on lamp", "lamp off", "lamp", at_least=0.7) is True


def test_same_columns_score_only_rows_that_are_still_the_same():
    scorer = WordScorer()
    found = scorer.same("on lamp", ["on lamp", "off lamp", "on"], ("on", "lamp"), at_least=0.7)
    assert found.tolist() == [True, False, False]
    assert scorer.scored == 3 + 2


@pytest.mark.parametrize(
    ("conditions", "at_least", "message"),
    [([], 0.7, "must be one or more"), (["on"], 70, "from 0 to 1"), ([""], 0.7, "have text")],
)
def test_same_bad_input_is_refused(conditions, at_least, message):
    with pytest.raises(InputError, match=message):
        WordScorer().same("a", "b", conditions, at_least=at_least)


def test_lowest_raw_is_the_first_that_reaches_the_score():
    calibration = Calibration((-1.0, 0.5, 1.0), (0.0, 0.2, 0.9))
    # 0.55 lies half way from 0.2 to 0.9, so at half way from 0.5 to 1
    raw = calibration.lowest_raw(0.55)
    assert raw == pytest.approx(0.75, abs=1e-6)
    assert calibration.apply(raw) >= np.float32(0.55) > calibration.apply(np.nextafter(raw, 0))
    assert calibration.lowest_raw(0.0) == -1.0
    assert calibration.lowest_raw(0.95) == np.inf
