from __future__ import annotations

import json
import math

import pytest

from condsim.errors import InputError
from condsim.evaluation.bootstrap import Difference, Metric
from condsim.evaluation.metrics import METRICS
from condsim.evaluation.report import ModelResult, Report


@pytest.fixture
def report():
    metrics = {name: Metric(0.1 + 0.2, -1 / 3, 97.5) for name in METRICS}
    return Report(
        task="dev",
        task_revision="0123456789ab",
        rows=12,
        valid_rows=10,
        invalid_rows=2,
        pairs=5,
        contrasting_pairs=4,
        model=ModelResult("mödel", metrics, revision="r1"),
        baselines=(ModelResult("condition-only", metrics, fitted_on="train 01"),),
        against=ModelResult("old", metrics),
        comparison={name: Difference(1.0, -0.5, 2.5, 0.25) for name in METRICS},
        seed=0,
        resamples=1000,
        versions={"python": "3.11.7", "numpy": "2.4.6"},
        created="2030-01-02T03:04:05+00:00",
    )


def test_report_round_trip_is_exact(report, tmp_path):
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json") == report


def test_report_round_trip_without_comparison_is_exact(report, tmp_path):
    alone = report.replaced(against=None, comparison={})
    alone.to_json(str(tmp_path / "report.json"))
    assert Report.from_json(str(tmp_path / "report.json")) == alone


def test_report_nan_is_written_as_null_and_read_as_nan(report, tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    constant = ModelResult("constant", {"spearman": Metric(math.nan, math.nan, math.nan)})
    report.replaced(model=constant).to_json(first)
    assert json.loads(first.read_text())["model"]["metrics"]["spearman"]["value"] is None
    again = Report.from_json(first)
    assert math.isnan(again.model.metrics["spearman"].value)
    again.to_json(second)
    assert second.read_bytes() == first.read_bytes()


def test_report_to_json_replaces_an_earlier_file_and_leaves_nothing_beside(report, tmp_path):
    path = tmp_path / "report.json"
    path.write_text("earlier")
    report.to_json(path)
    assert Report.from_json(path) == report
    assert list(tmp_path.iterdir()) == [path]


def test_report_to_json_missing_folder_is_an_error(report, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        report.to_json(tmp_path / "none" / "report.json")


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_report_from_json_unknown_format_is_an_error(report, tmp_path, version):
    path = tmp_path / "report.json"
    report.to_json(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": version}))
    with pytest.raises(InputError, match=r"report\.json is not a report .*'format' must be 1"):
        Report.from_json(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not JSON"),
        ("[1]", "'format' must be 1, got None"),
        ("{}", "'format' must be 1, got None"),
        ('{"format": 1}', "not a complete report: task: Field required"),
        ('{"format": 1, "model": 3}', "not a complete report"),
    ],
)
def test_report_from_json_damaged_file_is_an_error(tmp_path, text, message):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Report.from_json(path)


def test_report_from_json_extra_key_is_an_error(report, tmp_path):
    path = tmp_path / "report.json"
    report.to_json(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "surprise": 1}))
    with pytest.raises(InputError, match="surprise"):
        Report.from_json(path)


def test_report_from_json_missing_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Report.from_json(tmp_path / "none.json")


def test_report_from_json_broken_utf8_is_an_error(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(b'{"format": "\xff"}')
    with pytest.raises(InputError, match="not a report"):
        Report.from_json(path)
