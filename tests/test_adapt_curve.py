"""The learning curve of adapting: its page is made of figures that are kept."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("sentence_transformers")
from benchmarks.adapt_curve import app


def test_page_of_finished_adaptations_has_means_over_seeds(tmp_path):
    none = {"spearman": 8.0, "pair_accuracy": 50.0, "csts": 70.0, "stsb": 80.0}
    (tmp_path / "films-0-0.json").write_text(json.dumps(none))
    for seed, spearman in enumerate((30.0, 32.0)):
        figures = {**none, "spearman": spearman, "minutes": 2.0, "moved": 0.02}
        (tmp_path / f"films-50-{seed}.json").write_text(json.dumps(figures))
    page = tmp_path / "page.md"
    options = ["--runs", str(tmp_path), "--set", "films", "--size", "50", "--seeds", "2"]
    assert CliRunner().invoke(app, [*options, "--output", str(page)]).exit_code == 0
    assert "| films | none | 8.0 | 50.0 | 70.0 | 80.0 |  |  |" in page.read_text()
    assert "| films | 50 | 31.0 | 50.0 | 70.0 | 80.0 | 0.020 | 2.0 |" in page.read_text()
