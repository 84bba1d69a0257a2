import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.plots import score_histogram


def test_score_histogram_two_models_writes_png(tmp_path):
    pytest.importorskip("matplotlib")
    spread = np.linspace(0, 1, 50, dtype=np.float32)
    score_histogram({"a": spread, "b": spread**2}, tmp_path / "h.png")
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")


def test_score_histogram_no_model_raises(tmp_path):
    with pytest.raises(InputError, match="one model or more"):
        score_histogram({}, tmp_path / "h.png")
