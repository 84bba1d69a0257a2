from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console
from tests.evaluation.conftest import report_of

from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.metrics import METRICS
from condsim.evaluation.plots import predicted_against_gold
from condsim.evaluation.report import ModelResult, Report, to_markdown, to_table
from condsim.evaluation.statistics import Difference, Metric


@pytest.fixture
def report():
    metrics = {name: Metric(0.1 + 0.2, -1 / 3, 97.5) for name in METRICS}
    return report_of(
        ModelResult("mödel", metrics, revision="r1"),
        baselines=(ModelResult("condition-only", metrics, fitted_on="train 01"),),
        against=ModelResult("old", metrics),
        comparison={name: Difference(1.0, -0.5, 2.5, 0.25) for name in METRICS},
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "report.json"


def test_report_round_trip_is_exact(report, path):
    for written in (report, report.replaced(against=None, comparison={})):
        path.write_text("earlier")
        written.to_json(str(path))
        assert Report.from_json(path) == written
    assert list(path.parent.iterdir()) == [path]


def test_report_nan_is_written_as_null_and_read_as_nan(report, path):
    constant = ModelResult("constant", {"spearman": Metric(math.nan, math.nan, math.nan)})
    report.replaced(model=constant).to_json(path)
    first = path.read_bytes()
    assert json.loads(first)["model"]["metrics"]["spearman"]["value"] is None
    again = Report.from_json(path)
    assert math.isnan(again.model.metrics["spearman"].value)
    again.to_json(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("changes", [{"format": 2}, {"model": 3}, {"surprise": 1}])
def test_report_from_json_wrong_value_is_named(report, path, changes):
    report.to_json(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=rf"report\.json: .*{next(iter(changes))}"):
        Report.from_json(path)


@pytest.fixture
def evaluated(make_task, make_scorer):
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 6, size=60)
    model = make_scorer("a|b [bold]", labels + generator.normal(size=60))
    return evaluate(
        model,
        make_task(labels),
        baselines=["word-overlap"],
        against=make_scorer("second", generator.random(60)),
        resamples=20,
    )


def printed(table, *, width=80):
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)
    return stream.getvalue()


def test_to_table_shows_every_result_whole_in_80_columns(evaluated):
    text = printed(to_table(evaluated))
    for name in ("a|b [bold]", "second", "condition-only", "word-overlap", "difference"):
        assert name in text
    spearman = evaluated.model.metrics["spearman"]
    assert f"{spearman.value:.1f}" in text
    assert f"{spearman.low:.1f}…{spearman.high:.1f}" in text
    assert f"p = {evaluated.comparison['spearman'].p_value:.3f}" in text
    assert "out of fold" in text
    undefined = next(line for line in text.splitlines() if "condition-only" in line)
    assert undefined.split()[-1] == "-"
    assert max(map(len, text.splitlines())) <= 80


def test_to_markdown_is_a_pipe_table(evaluated):
    lines = to_markdown(evaluated).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| | Spearman | Pearson | MSE | Pair acc. | Partial |"
    assert table[2].startswith("| **a\\|b [bold]** | ")
    cells = {len(line.replace("\\|", "").split("|")) for line in table}
    assert cells == {8}
    pearson = evaluated.model.metrics["pearson"]
    assert f"{pearson.value:.1f} [{pearson.low:.1f}, {pearson.high:.1f}]" in table[2]
    assert table[-1].startswith("| difference from second | +")
    assert f"p = {evaluated.comparison['mse'].p_value:.3f}" in table[-1]
    assert to_markdown(evaluated).endswith("seed 0\n")


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


def test_predicted_against_gold_no_pairs_raises(tmp_path, make_task):
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="over-estimation is counted on pairs"):
        predicted_against_gold({"a": np.zeros(2)}, make_task([3, 3]), tmp_path / "p.png")
    assert not list(tmp_path.iterdir())
