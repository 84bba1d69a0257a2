"""The learning curve of adapting: its page, and figures that are kept."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("sentence_transformers")
from papers.adapt_curve import Curve, page

from condsim.training.adaptation import AdaptSettings


def test_page_of_two_seeds_has_mean_and_deviation() -> None:
    none = {"spearman": 8.0, "pair_accuracy": 50.0, "csts": 70.0, "stsb": 80.0}
    runs = [{**none, "spearman": one, "minutes": 2.0, "moved": 0.02} for one in (30.0, 32.0)]
    text = page({("films", 0): [none], ("films", 50): runs}, "command")
    assert "| films | none | 8.0 | 50.0 | 70.0 | 80.0 |  |  |" in text
    assert "| films | 50 | 31.0 ± 1.4 | 50.0 ± 0.0 |" in text
    assert "| 0.020 ± 0.000 | 2.0 ± 0.0 |" in text


def test_curve_of_a_finished_adaptation_reads_its_figures(tmp_path) -> None:
    (tmp_path / "films-50-1.json").write_text(json.dumps({"spearman": 30.0}))
    curve = Curve(tmp_path / "no-data", tmp_path)
    assert curve.figures("films", 50, 1, AdaptSettings()) == {"spearman": 30.0}
