"""The speed table on a few made-up speeds and sentences."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def encode_speed(monkeypatch):
    pytest.importorskip("sentence_transformers")
    monkeypatch.syspath_prepend(str(ROOT))
    yield importlib.import_module("benchmarks.encode_speed")
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_encode_speed_sides_differ_in_the_size_of_the_batches(encode_speed):
    calls = []
    sides = encode_speed._both("model", lambda texts: calls.append(len(texts)))
    sentences = [f"sentence {number}" for number in range(70)]
    sides["model | sorted"](sentences)
    sides["model | as they come"](sentences)
    assert calls == [70, 32, 32, 6]


def test_encode_speed_results_are_ratios_within_and_between_models(encode_speed):
    speeds = {
        **{"condsim default, int8 | sorted": 300.0, "condsim default, int8 | as they come": 200.0},
        **{"condsim-minilm, cpu | sorted": 100.0, "condsim-minilm, cpu | as they come": 80.0},
    }
    results = encode_speed._results(speeds, note="how")
    assert [round(result.ratio, 2) for result in results] == [1.5, 1.25, 3.0]
    assert results[0].notes == ("how", encode_speed.PUBLISHED)
    assert {result.unit for result in results} == {"sentences/s"}
