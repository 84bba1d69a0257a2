from __future__ import annotations

import csv
import dataclasses
import importlib
import statistics

import numpy as np
import pytest
from papers.catalogue import parse
from papers.columns import resolve_backbones
from papers.results import mean_interval, over_seeds

from condsim.errors import InputError
from condsim.evaluation.statistics import Metric
from papers import load_experiment, open_work, reproduce, trained as trained_work

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

TINY = ("epochs=1", "batch_size=8", "max_seq_length=48", "precision=float32")


def table_of(page):
    """Cells of the first table, by the cells before the numbers."""
    rows = {}
    for line in page.split("## ", 2)[1].splitlines():
        if line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
            rows.setdefault(cells[1] if len(cells) > 2 else cells[0], cells)
    return rows


@pytest.fixture
def run(options, tmp_path):
    def go(name, **changes):
        report_only = changes.pop("report_only", False)
        experiment = load_experiment(name) if isinstance(name, str) else name
        chosen = dataclasses.replace(options, **changes)
        return reproduce(experiment, chosen, tmp_path / "out", report_only=report_only)

    return go


@pytest.fixture
def trained(monkeypatch, finished):
    """Stands in for training: a run is finished at once. Gives the folders in their order."""
    folders = []

    def run_or_resume(recipe, folder):
        folders.append(folder)
        planned = by_folder[folder]
        finished(planned, spearman=60.0 + planned.recipe.seed)
        return object()

    by_folder = {}
    real = trained_work.Trained.prepare

    def prepare(self, missing):
        by_folder.update({run.folder: run for run in missing})
        return real(self, missing)

    monkeypatch.setattr("condsim.training.run.run_or_resume", run_or_resume)
    monkeypatch.setattr(trained_work, "_has_weights", lambda name: "minilm" in name.lower())
    monkeypatch.setattr(trained_work.Trained, "prepare", prepare)
    return folders


def test_reproduce_table_has_both_numbers_side_by_side(run, trained):
    written = run("ccl-table3")
    page = written.page.read_text()
    rows = table_of(page)
    head = rows["objective"]
    assert head[2:] == [
        *(f"{name}, paper" for name in ("RoBERTa base", "RoBERTa large", "DiffCSE base")),
        *("SimCSE base, paper", "SimCSE large, paper", "MiniLM, ours"),
    ]
    assert rows["CCL"][5:] == ["46.8", "48.1", "61.0 ± 1.0 (3)"]
    assert page.count("60.0 [58.0, 62.0]") == 3  # the tri-encoders, one seed each
    assert "+0.0 Spearman [+0.0, +0.0] (mean and 95 % t-interval over 3 seeds" in page
    assert "condition-only baseline" in page
    assert "Made by `python -m papers ccl-table3`." in page
    assert (written.finished, written.planned) == (12, 12)
    assert written.plot.read_bytes().startswith(b"\x89PNG")


def test_reproduce_finished_runs_are_not_run_again(run, trained):
    run("ccl-table4")
    assert len(trained) == 5
    run("ccl-table4")
    run("ccl-table8")  # Pearson of the same runs
    run("ccl-table5")  # shares the run with sigma = 0.5
    assert len(trained) == 5 + 4


def test_reproduce_without_weights_says_so(run, trained):
    written = run("ccl-table4", backbones=resolve_backbones(["roberta-base", "minilm"]))
    rows = table_of(written.page.read_text())
    assert rows["w/o BCL"][2:] == ["43.1", "not run: no weights", "46.3", "60.0 [58.0, 62.0]"]
    assert (written.finished, written.planned) == (5, 10 + 0)


def test_reproduce_report_only_trains_nothing(run, trained, options, finished):
    runs = open_work(load_experiment("ccl-table3"), options).runs
    finished(runs[0], spearman=50.0)
    written = run("ccl-table3", report_only=True)
    rows = table_of(written.page.read_text())
    assert not trained
    assert rows["Quad + MSE"][-1] == "50.0 [48.0, 52.0] (1 of 3)"
    assert rows["CCL"][-1] == "not run"


def test_reproduce_keeps_the_notes_below_the_marker_and_needs_it(run, trained):
    written = run("ccl-table5")
    text = written.page.read_text()
    assert text.endswith("<!-- notes -->\n")
    written.page.write_text(text + "\nWhat was seen.\n")
    again = run("ccl-table5").page.read_text()
    assert again.endswith("<!-- notes -->\n\nWhat was seen.\n")
    assert again.startswith(text)
    written.page.write_text("all mine\n")
    with pytest.raises(InputError, match="has no line <!-- notes -->"):
        run("ccl-table5")
    assert written.page.read_text() == "all mine\n"


def test_reproduce_label_histogram_counts_the_labels(run):
    written = run("csts-figure4")
    with written.table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["label"] for row in rows] == ["1", "2", "4", "5"]
    assert sum(int(row["rows"]) for row in rows) == 32
    assert sum(float(row["percent"]) for row in rows) == pytest.approx(100, abs=0.01)
    assert "condition-only baseline: Spearman" in written.page.read_text()


def test_reproduce_over_estimation_counts_cosines_once(run, trained, options, monkeypatch):
    class Far:
        def score(self, sentences1, sentences2, conditions, *, scale):
            assert scale == "raw"
            loaded.append(len(sentences1))
            return np.where(np.char.endswith(conditions, "person"), 1.0, -1.0).astype(np.float32)

    loaded = []
    module = importlib.import_module("condsim.loading")
    monkeypatch.setattr(module, "load_scorer", lambda folder: Far())
    written = run("ccl-appendix-a")
    run("ccl-appendix-a")
    assert len(loaded) == 9
    rows = table_of(written.page.read_text())
    assert rows["CCL"][2] == "46"
    assert rows["CCL"][3] == rows["Quad + MSE"][3]
    assert float(rows["CCL"][3].split()[0]) > 0
    assert rows["CCL"][3].endswith(".0 ± 0.0 (3)")
    assert "100 % of it" in written.page.read_text()


def test_reproduce_zero_shot_measures_the_backbone_as_it_is(run, tiny_backbone):
    written = run(
        "csts-table2",
        backbones=resolve_backbones([str(tiny_backbone)]),
        overrides=("max_seq_length=48",),
    )
    page = written.page.read_text()
    assert "not run" not in page
    assert "as it is, nothing trained" in page
    assert "STS-B has no conditions" in page
    assert (written.finished, written.planned) == (2, 2)


def test_reproduce_trains_and_goes_on_for_real(run, tiny_backbone, options):
    rows = {"one": {"cells": {"encoder": "bi"}, "recipe": "bi", "seeds": 2}}
    words = dict.fromkeys(("title", "source", "claim", "measured_on"), "x")
    experiment = parse({**words, "rows": rows}, name="tiny")
    changes = {"backbones": resolve_backbones([str(tiny_backbone)]), "overrides": TINY}
    written = run(experiment, **changes)
    assert (written.finished, written.planned) == (2, 2)
    assert "(2)" in written.page.read_text()
    reports = [*options.runs.glob("*/report.json")]
    changed = {path: path.stat().st_mtime_ns for path in reports}
    run(experiment, **changes)
    assert {path: path.stat().st_mtime_ns for path in reports} == changed


def test_over_seeds_more_have_a_deviation():
    # mean 2, s = 1, t(2) = 4.3027: half width 4.3027 / sqrt(3) = 2.4841
    interval = mean_interval([1.0, 2.0, 3.0])
    assert (interval.low, interval.high) == pytest.approx((-0.4841, 4.4841), abs=1e-4)
    found = over_seeds([Metric(value, 0.0, 99.0) for value in (60.0, 62.0, 67.0)], planned=3)
    assert found.mean == 63.0
    assert found.std == pytest.approx(statistics.stdev([60, 62, 67]))
    assert found.low is None
