import math

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.plots import predicted_against_gold, score_histogram


def test_score_histogram_two_models_writes_png(tmp_path):
    pytest.importorskip("matplotlib")
    spread = np.linspace(0, 1, 50, dtype=np.float32)
    score_histogram({"a": spread, "b": spread**2}, tmp_path / "h.png")
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")


def test_score_histogram_no_model_raises(tmp_path):
    with pytest.raises(InputError, match="at least one model"):
        score_histogram({}, tmp_path / "h.png")


def test_predicted_against_gold_two_models_writes_png(tmp_path, make_task):
    pytest.importorskip("matplotlib")
    task = make_task([5, 1, 4, 2, 3, 2, math.nan, 1])
    scores = {
        "runs/before $a$ $": np.linspace(-1, 1, 8, dtype=np.float32),
        "long/" * 40: np.zeros(8, np.float32),
    }
    for shown in (scores, {"one": np.ones(8, np.float32)}):
        predicted_against_gold(shown, task, tmp_path / "p.png")
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_predicted_against_gold_no_model_or_no_pairs_raises(tmp_path, make_task):
    with pytest.raises(InputError, match="at least one model"):
        predicted_against_gold({}, make_task([5, 1]), tmp_path / "p.png")
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="over-estimation is counted on pairs"):
        predicted_against_gold({"a": np.zeros(2)}, make_task([3, 3]), tmp_path / "p.png")
    assert not list(tmp_path.iterdir())
