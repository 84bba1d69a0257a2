"""The benchmark against mteb on a tiny model and rows made by a grammar."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path

import pytest

from condsim.errors import ModelError

pytest.importorskip("mteb")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def suite_mteb(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    yield importlib.import_module("benchmarks.suite_mteb")
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_suite_mteb_both_sides_agree_and_are_timed(
    suite_mteb, tiny_backbone, tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(suite_mteb, "resolve_backbone", lambda _: str(tiny_backbone))
    rows = suite_mteb.generated_rows

    def short_rows(**options):  # condsim splits what the tiny model cannot read, and mteb cuts it
        for first, second, *rest in rows(**options):
            yield first[:40], second[:40], *rest

    monkeypatch.setattr(suite_mteb, "generated_rows", short_rows)
    monkeypatch.setattr(suite_mteb, "_QUICK", 20)
    monkeypatch.setattr(suite_mteb, "TOLERANCE", {"auto": 5.0, "float32": 0.02})  # few rows
    results = suite_mteb.run(quick=True, data=tmp_path / "none")
    assert [result.bar for result in results] == [2, None]
    for result in results:
        assert result.ratio == pytest.approx(result.theirs / result.ours)
        assert "7 STS data sets" in result.measured
        assert "140 pairs, generated" in result.notes[0]
        assert "processor time" in result.notes[0]
    assert ", float32, " in results[1].measured


def test_compare_refuses_sides_that_differ(suite_mteb):
    assert suite_mteb._compare({"sts12": 50.0}, {"sts12": 50.01}, tolerance=0.02) == pytest.approx(
        0.01
    )
    with pytest.raises(ModelError, match=r"differ by 0\.5000"):
        suite_mteb._compare({"sts12": 50.0}, {"sts12": 50.5}, tolerance=0.02)
    with pytest.raises(ModelError, match="differ by nan"):
        suite_mteb._compare({"sts12": 50.0}, {"sts12": float("nan")}, tolerance=0.02)
