from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import condsim
from condsim.cli.main import app
from condsim.errors import InputError, ModelError
from condsim.model.applicability import ApplicabilityHead


@pytest.fixture
def data(tmp_path):
    lines = ["sentence1,sentence2,condition,label"]
    for number in range(30):
        thing, label = ("dog", 4) if number % 3 else ("lamp", -1)
        lines.append(f"A {thing} number {number}.,A {thing} and {number}.,type of animal,{label}")
    path = tmp_path / "labelled.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(*words):
    return CliRunner().invoke(app, ["applicability", *map(str, words)])


def test_fit_writes_a_head_for_the_model(data, tmp_path):
    output = tmp_path / "head.json"
    result = run("fit", data, "--output", output)
    assert result.exit_code == 0, result.output
    assert "20 rows that apply and 10 that do not" in result.output
    model = condsim.load()
    model.head = ApplicabilityHead.load(output)
    lamp = model.applicability("A lamp shines.", "A lamp is off.", "type of animal")
    assert lamp < model.applicability("A dog barks.", "A dog sits.", "type of animal")


def test_evaluate_shows_and_writes(data, tmp_path):
    output = tmp_path / "report.json"
    result = run("evaluate", data, "--extra", data, "--json", output, "--resamples", "10")
    assert isinstance(result.exception, InputError)  # no extra row has sentences of its own
    result = run("evaluate", data, "--json", output, "--resamples", "10")
    assert result.exit_code == 0, result.output
    assert "AUROC" in result.output
    assert json.loads(output.read_text("utf-8"))["head"]["value"] > 0.9


def test_evaluate_model_without_embeddings_refused(data, monkeypatch):
    class Other:
        name = "other"

    monkeypatch.setattr("condsim.loading.load_scorer", lambda model: Other())
    result = run("evaluate", data)
    assert isinstance(result.exception, ModelError)
    assert "bi- or tri-encoder" in str(result.exception)
