from __future__ import annotations

import numpy as np
import pytest

from condsim.data.rewordings import load_rewordings
from condsim.evaluation.rewording import robustness

ROWS = [
    ("a", "b", "people", "number of people", 0.2),
    ("a", "b", "people", "People count.", 0.4),
    ("c", "d", "people", "number of people", 0.5),
    ("c", "d", "people", "People count.", 0.5),
    ("a", "b", "sport", "sport", 0.1),
    ("a", "b", "sport", "which sport", 0.1),
    ("a", "b", "sport", "kind of sport", 0.4),
]


class Table:
    name = "table"

    def __init__(self, rows):
        self.scores = {row[:2] + row[3:4]: row[4] for row in rows}

    def score(self, sentences1, sentences2, conditions):
        keys = zip(sentences1, sentences2, conditions, strict=True)
        return np.array([self.scores[key] for key in keys], np.float32)


@pytest.fixture
def rewordings(tmp_path):
    lines = ["sentence1,sentence2,condition_group,condition", *(",".join(row[:4]) for row in ROWS)]
    path = tmp_path / "reworded.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_rewordings(path)


def test_robustness_worked_by_hand(rewordings):
    result = robustness(Table(ROWS), rewordings)
    # Standard deviations with n - 1: of .2, .4: .1414; of .5, .5: 0; of .1, .1, .4: .1732.
    deviations = [0.141421, 0.0, 0.173205]
    assert result.groups == 3
    assert result.mean.value == pytest.approx(np.mean(deviations), abs=1e-5)
    assert result.p95.value == pytest.approx(np.quantile(deviations, 0.95), abs=1e-5)
    assert result.kinds["people"].value == pytest.approx(0.0707107, abs=1e-5)
    assert result.kinds["sport"].value == pytest.approx(0.1732051, abs=1e-5)
    assert result.mean.low <= result.mean.value <= result.mean.high
    assert not result.passes


def test_robustness_wordings_worst_first(rewordings):
    worst, *_, last = robustness(Table(ROWS), rewordings).wordings
    assert (worst.condition, worst.pairs) == ("kind of sport", 1)
    assert worst.shift == pytest.approx(0.2, abs=1e-6)  # .4 - mean of .1, .1, .4
    assert last.distance == pytest.approx(0.05, abs=1e-6)


def test_robustness_constant_scores_pass(rewordings):
    result = robustness(Table([(*row[:4], 0.5) for row in ROWS]), rewordings)
    assert result.passes
    assert result.mean.value == result.p95.high == 0
