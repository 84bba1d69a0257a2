from __future__ import annotations

import numpy as np
import pytest

from condsim.data.triplets import Triplets
from condsim.errors import InputError, ModelError
from condsim.evaluation.evaluate import triplet_accuracy
from condsim.model.baselines import baseline

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


def test_triplet_accuracy_constant_scorer_is_never_right():
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


def test_triplet_accuracy_no_triplets_refused():
    with pytest.raises(InputError, match="has no triplets"):
        triplet_accuracy(Fixed([]), Triplets("x", "0", (), (), ()))
