"""The files of examples/, one for each task of the README."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from condsim.cli.main import _app_of

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def invoke(*words):
    result = CliRunner().invoke(_app_of([words[0]]), [str(word) for word in words])
    assert result.exit_code == 0, result.exception
    return result


def test_products_are_scored_under_several_conditions(tmp_path):
    words = ("--text1", "left", "--text2", "right", "--condition", "the color")
    invoke("score", EXAMPLES / "products.csv", *words, "--condition", "the use", "--output",
           tmp_path / "scored.csv")  # fmt: skip
    with (tmp_path / "scored.csv").open(newline="") as stream:
        head = next(csv.reader(stream))
    assert head == ["left", "right", "score: the color", "score: the use"]


def test_labeled_pairs_have_a_threshold_and_are_measured():
    result = invoke("threshold", EXAMPLES / "labeled.csv", "--precision", 0.6)
    assert 0 < float(result.stdout) < 1
    text = (EXAMPLES / "labeled.csv").read_text()
    assert text.count(",5\n") == text.count(",1\n")
    result = invoke("evaluate", EXAMPLES / "labeled.csv", "--resamples", 20)
    assert "Spearman" in result.stdout


def test_tickets_become_training_rows(tmp_path):
    invoke("build", "criteria", EXAMPLES / "tickets.csv", "--output", tmp_path / "rows.csv",
           "--rows", 40)  # fmt: skip
    with (tmp_path / "rows.csv").open(newline="") as stream:
        assert {row["criterion"] for row in csv.DictReader(stream)} >= {"topic", "mood"}


def test_duplicates_are_dropped(tmp_path):
    invoke("dedupe", EXAMPLES / "duplicates.csv", "--condition", "the request", "--at-least", 0.9,
           "--output", tmp_path / "kept.csv")  # fmt: skip
    with (tmp_path / "kept.csv").open(newline="") as stream:
        kept = list(csv.DictReader(stream))
    # The last row is the first one again.
    assert 12 <= len(kept) < 24
    assert kept[0]["id"] == "1"


def test_memory_keeps_facts_once_with_history_and_a_queue_of_conflicts(tmp_path, monkeypatch):
    pytest.importorskip("lancedb")
    monkeypatch.syspath_prepend(EXAMPLES)
    from memory import Memory

    memory = Memory(tmp_path)
    facts = {
        "Tests run on Jenkins.": "new",
        "Anna is allergic to peanuts.": "new",
        "We have moved the tests from Jenkins to GitHub Actions.": "update",
        "Peanuts are fine for Anna; she has no allergies.": "contradiction",
    }
    assert {fact: memory.add(fact) for fact in facts} == facts
    assert memory.recall("where do the tests run?", top=1) == [list(facts)[2]]
    (hit,) = memory.index.search("tests", plain=True, top=1)
    assert json.loads(hit.columns["history"]) == ["Tests run on Jenkins."]
    assert [one["known"] for one in memory.conflicts()] == ["Anna is allergic to peanuts."]
    assert len(Memory(tmp_path).index) == 2


def test_notebook_runs(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(EXAMPLES)
    notebook = json.loads((EXAMPLES / "conditions.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
