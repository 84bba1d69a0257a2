"""``condsim learn``, ``assign`` and ``label``, and a criterion in place of a condition."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from tests.commands import fault, rows_in, succeed

import condsim
from condsim.errors import ModelError
from condsim.model.criterion import Criterion

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk.csv"
NEW = HELPDESK.with_name("helpdesk-new.csv")


@pytest.fixture(scope="module")
def criterion(tmp_path_factory):
    path = tmp_path_factory.mktemp("learned") / "problem.criterion"
    succeed("learn", HELPDESK, "--value", "problem", "--condition", "the problem", "--output", path)
    return path


def test_learn_writes_a_criterion_and_its_figures(criterion):
    learned = Criterion.load(criterion)
    assert learned.condition == "the problem"
    assert learned.figures.labels == 120
    assert "cannot log in" in learned.values


def test_assign_adds_values(criterion, tmp_path):
    output = tmp_path / "assigned.csv"
    succeed("assign", NEW, "--criterion", criterion, "--output", output)
    rows = rows_in(output)
    given = [row for row in rows if row["value"]]
    assert len(rows) == 30
    assert len(given) > 24
    assert sum(row["value"] == row["problem"] for row in given) >= 0.9 * len(given)
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)


@pytest.mark.parametrize("command", ["cluster", "dedupe"])
def test_criterion_is_a_condition_of_collections(criterion, tmp_path, command):
    pytest.importorskip("sklearn")
    output = tmp_path / "out.csv"
    options = ("--k", "6") if command == "cluster" else ("--at-least", "0.99")
    succeed(command, NEW, "--condition", criterion, *options, "--output", output)
    assert output.stat().st_size > 0


def test_criterion_is_a_condition_of_pairs(criterion, tmp_path):
    output = tmp_path / "scores.csv"
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "sentence1,sentence2\nI cannot log in.,My password is refused.\n"
        "I cannot log in.,The invoice is wrong.\n"
    )
    succeed("score", "--file", pairs, "--condition", criterion, "--output", output)
    same, different = rows_in(output)
    assert float(same["score"]) > 0.5 > float(different["score"])


def test_label_in_the_terminal(tmp_path, monkeypatch):
    truth = {row["text"]: row["problem"] for row in rows_in(HELPDESK)}
    output = tmp_path / "problem.csv"
    answers = iter(["", "u", "s", "d", *["new feature", "data lost", "1"] * 4, "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    succeed("label", HELPDESK, "--condition", "the problem", "--output", output)
    rows = rows_in(output)
    assert [row["answer"] for row in rows[:2]] == ["skip", "does not say"]
    assert {row["value"] for row in rows[2:]} == {"new feature", "data lost"}
    assert all(row["text"] in truth for row in rows)
    assert Criterion.load(output.with_suffix(".criterion")).figures.labels == 12


def test_label_pairs_in_the_terminal(tmp_path, monkeypatch):
    output = tmp_path / "pairs.csv"
    answers = iter(["perhaps", "s", "d", *["1", "2", "same", "different"] * 3, "u", "2", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    result = succeed("label", HELPDESK, "--condition", "the problem", "--pairs", "--output", output)
    assert "A pair is 'same' or 'different'; got 'perhaps'" in result.stdout
    rows = rows_in(output)
    assert [row["answer"] for row in rows[:3]] == ["skip", "does not say", ""]
    assert {row["label"] for row in rows[2:]} == {"same", "different"}
    assert "12 labels are too few to promise a threshold" in result.stderr
    assert Criterion.load(output.with_suffix(".criterion")).figures.labels == 12
    # The file is one of labeled pairs for other commands.
    fault_line = fault("threshold", output, "--condition", output.with_suffix(".criterion"))
    assert "Too few labeled rows" in fault_line
    other = fault("label", HELPDESK, "--condition", "the problem", "--output", output)
    assert "its columns must be text, condition, value, answer" in other


def test_learn_prints_the_threshold_that_the_labels_allow(tmp_path):
    words = (
        "--value",
        "problem",
        "--condition",
        "the problem",
        "--output",
        tmp_path / "a.criterion",
    )
    result = succeed("learn", HELPDESK, *words)
    assert 0.3 < float(result.stdout.split()[-1]) < 1
    assert "in 100 or more are the same" in result.stderr


def test_learn_and_label_faults_are_one_line(tmp_path):
    few = tmp_path / "few.csv"
    few.write_text("text,value\na b,x\nc d,y\n")
    target = tmp_path / "a.criterion"
    message = fault("learn", few, "--condition", "the x", "--output", target)
    assert "8 or more" in message
    assert not target.exists()
    assert "--value" in fault(
        "learn", few, "--value", "kind", "--condition", "x", "--output", target
    )
    assert ".criterion" in fault("learn", few, "--condition", "x", "--output", tmp_path / "a.json")
    target.write_text(json.dumps({"kind": "other"}))
    output = tmp_path / "o.csv"
    message = fault("assign", few, "--criterion", target, "--output", output, kind=ModelError)
    assert "a.criterion: is not a criterion" in message


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """Labeled pairs, half of them the same."""
    rows = rows_in(HELPDESK)
    path = tmp_path_factory.mktemp("labeled") / "pairs.csv"
    with path.open("w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("sentence1", "sentence2", "label"))
        for number, first in enumerate(rows):
            same = [row for row in rows if row["problem"] == first["problem"]]
            second = same[number % len(same)] if number % 2 else rows[-number - 1]
            label = int(first["problem"] == second["problem"])
            writer.writerow((first["text"], second["text"], label))
    return path


def test_criterion_is_a_condition_of_labeled_pairs(criterion, labeled, tmp_path):
    words = ("threshold", labeled, "--precision", "0.2")
    under = float(succeed(*words, "--condition", criterion).stdout.split()[0])
    plain = float(succeed(*words, "--condition", "the problem").stdout.split()[0])
    assert under != plain
    spearman = []
    for number, condition in enumerate((criterion, "the problem")):
        report = tmp_path / f"report{number}.json"
        succeed("evaluate", labeled, "--condition", condition, "--json", report)
        spearman.append(json.loads(report.read_text())["model"]["metrics"]["spearman"]["value"])
    assert spearman[0] > spearman[1]
    succeed("predict", labeled, "--condition", criterion, "--output", tmp_path / "p.json")
    assert len(json.loads((tmp_path / "p.json").read_text())) == 120


def test_criterion_is_a_condition_of_matches(criterion, tmp_path):
    output = tmp_path / "matches.csv"
    words = ("--condition", criterion, "--at-least", "0.5", "--output", output)
    succeed("match", NEW, HELPDESK, *words)
    rows = rows_in(output)
    assert len(rows) == 30
    expected = condsim.load().score(
        [row["text1"] for row in rows], [row["text2"] for row in rows], str(criterion)
    )
    assert [float(row["score"]) for row in rows] == pytest.approx(expected.tolist(), abs=1e-3)


@pytest.mark.parametrize("command", ["score", "predict", "evaluate", "threshold", "robustness"])
def test_criterion_among_other_conditions_is_one_line(criterion, tmp_path, command):
    path = tmp_path / "mixed.csv"
    lines = ["sentence1,sentence2,condition_group,condition,label"]
    for number in range(24):
        condition = criterion if number % 2 else "the problem"
        lines.append(
            f"text {number // 2},other {number // 4},problem,{condition},{number % 3 // 2}"
        )
    path.write_text("\n".join(lines) + "\n")
    words = {
        "score": ("--file", path, "--output", tmp_path / "o.csv"),
        "predict": (path, "--output", tmp_path / "o.csv"),
    }
    message = fault(command, *words.get(command, (path,)))
    assert "must be the condition of all rows" in message
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.slow
def test_criterion_of_rows_to_train_on_is_refused(criterion, tmp_path):
    pytest.importorskip("sentence_transformers")
    path = tmp_path / "pairs.csv"
    lines = [f"text {n},other {n},{criterion},{n % 2}" for n in range(60)]
    path.write_text("\n".join(["sentence1,sentence2,condition,label", *lines]) + "\n")
    message = fault("adapt", path, "--output", tmp_path / "model")
    assert "is a learned criterion" in message


def test_criterion_is_a_condition_of_embeddings(criterion, tmp_path):
    output = tmp_path / "vectors.npy"
    succeed("encode", NEW, "--column", "text", "--condition", criterion, "--output", output)
    texts = [row["text"] for row in rows_in(NEW)]
    assert np.load(output).shape == condsim.load().encode(texts, str(criterion)).shape


def test_learn_ignores_blank_values(tmp_path):
    path = tmp_path / "labels.csv"
    lines = [f"some text {n},{'ab'[n % 2] if n < 10 else ''}" for n in range(14)]
    path.write_text("\n".join(["text,value", *lines]) + "\n")
    succeed("learn", path, "--condition", "the x", "--output", tmp_path / "x.criterion")
    assert Criterion.load(tmp_path / "x.criterion").figures.labels == 10
