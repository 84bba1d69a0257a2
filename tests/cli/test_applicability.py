from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from tests.commands import fault, succeed

import condsim
from condsim.errors import ModelError
from condsim.model.applicability import ApplicabilityHead


@pytest.fixture
def data(tmp_path):
    lines = ["sentence1,sentence2,condition,label"]
    for number in range(30):
        thing, label = ("dog", 4) if number % 3 else ("lamp", -1)
        lines.append(f"A {thing} number {number}.,A {thing} and {number}.,type of animal,{label}")
    path = tmp_path / "labeled.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_fit_writes_a_head_for_the_model(data, tmp_path):
    output = tmp_path / "head.json"
    result = succeed("applicability", "fit", data, "--output", output)
    assert "20 rows that apply and 10 that do not" in result.output
    model = condsim.load()
    model.head = ApplicabilityHead.load(output)
    lamp = model.applicability("A lamp shines.", "A lamp is off.", "type of animal")
    assert lamp < model.applicability("A dog barks.", "A dog sits.", "type of animal")


def test_evaluate_shows_and_writes(data, tmp_path, monkeypatch):
    output = tmp_path / "report.json"
    words = ("applicability", "evaluate", data, "--resamples", "10", "--json", output)
    result = succeed(*words)
    assert "AUROC" in result.output
    assert json.loads(output.read_text("utf-8"))["head"]["value"] > 0.9
    # No extra row has sentences of its own.
    fault(*words, "--extra", data)
    monkeypatch.setattr("condsim.loading.load_scorer", lambda model: SimpleNamespace(name="other"))
    assert "bi- or tri-encoder" in fault(*words, kind=ModelError)
