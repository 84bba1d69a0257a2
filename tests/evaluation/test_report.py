from __future__ import annotations

import json
import math

import pytest

from condsim.errors import InputError
from condsim.evaluation.metrics import METRICS
from condsim.evaluation.report import ModelResult, Report
from condsim.evaluation.statistics import Difference, Metric


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


def test_report_to_json_missing_folder_is_an_error(report, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        report.to_json(tmp_path / "none" / "report.json")


@pytest.mark.parametrize(
    "changes", [{"format": 2}, {"format": "1"}, {"model": 3}, {"task": None}, {"surprise": 1}]
)
def test_report_from_json_wrong_value_is_named(report, path, changes):
    report.to_json(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=rf"report\.json: .*{next(iter(changes))}"):
        Report.from_json(path)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"{}", b'{"format": "\xff"}'])
def test_report_from_json_other_file_is_an_error(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"report\.json"):
        Report.from_json(path)


def test_report_from_json_missing_file_is_an_error(path):
    with pytest.raises(InputError, match="cannot be read"):
        Report.from_json(path)
