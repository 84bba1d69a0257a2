from __future__ import annotations

import logging
from functools import partial

import numpy as np
import pytest
from tests import commands

from condsim.evaluation.report import Report
from condsim.model.base import SCORER_LOG

invoke, fault = partial(commands.succeed, "evaluate"), partial(commands.fault, "evaluate")


class LengthScorer:
    """Scores by the length of the condition: needs no model."""

    def __init__(self, name):
        self.name = name

    def score(self, sentences1, sentences2, conditions):
        sign = -1 if self.name == "worse" else 1
        return np.asarray([sign * len(text) / 50 for text in conditions], np.float32)


@pytest.fixture(autouse=True)
def loaded(monkeypatch):
    names = []

    def open_length_scorer(model):
        names.append(model)
        return LengthScorer(model or "default")

    monkeypatch.setattr("condsim.loading.open_scorer", open_length_scorer)
    return names


@pytest.fixture
def data(write_lamps):
    return write_lamps("dev.csv")


def test_evaluate_shows_the_log_of_a_slow_model(data, monkeypatch, caplog):
    # The level is as it is at first, and is so again after each test.
    caplog.set_level("WARNING", logger=SCORER_LOG)
    caplog.handler.setLevel("INFO")

    def score(self, sentences1, sentences2, conditions):
        message = f"{self.name}: {len(sentences1)} pairs, about 3 h"
        logging.getLogger(SCORER_LOG).info(message)
        return np.zeros(len(sentences1), np.float32)

    monkeypatch.setattr(LengthScorer, "score", score)
    invoke(data, "--model", "origin", "--resamples", 20)
    assert "origin: 23 pairs, about 3 h" in caplog.messages


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--baseline word-overlp", "Did you mean 'word-overlap'"),
        ("--json none/report.json", "does not exist"),
        ("--json .", "is a folder"),
        ("--plot p.png", "--plot is for --over-estimation only"),
        ("--over-estimation --plot p.pdf", "must be .png"),
        ("--over-estimation --plot none/p.png", "does not exist"),
        ("--over-estimation --plot .", "is a folder"),
    ],
)
def test_evaluate_bad_options_are_early_errors(data, loaded, monkeypatch, options, message):
    monkeypatch.chdir(data.parent)
    assert message in fault(data, *options.split())
    assert loaded == []


def test_evaluate_file_without_labels_or_contrasting_pairs_is_an_error(tmp_path, loaded):
    path, head = tmp_path / "single.csv", "sentence1,sentence2,condition,label\n"
    path.write_text(head + "A lamp.,A bulb.,the size,-1\n")
    assert "label" in fault(path)
    assert loaded == []
    path.write_text(head + "".join(f"Lamp {n}.,A bulb.,the size,{n + 1}\n" for n in range(4)))
    assert "over-estimation is counted on pairs of rows" in fault(path, "--over-estimation")


def test_evaluate_plot_is_written_and_nothing_scored_twice(data, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    score, names, picture = LengthScorer.score, [], tmp_path / "over.png"

    def counting(self, *rows):
        names.append(self.name)
        return score(self, *rows)

    monkeypatch.setattr(LengthScorer, "score", counting)
    options = ("--resamples", 20, "--over-estimation", "--against", "worse")
    invoke(data, *options, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert names == ["default", "worse"]


def test_evaluate_written_pairs_are_a_labeled_file(tmp_path):
    path, output = tmp_path / "pairs.txt", tmp_path / "out.json"
    path.write_text(
        "a ||| A runs. ||| B runs. ||| who = 1 ; what they do = 5\n"
        "b ||| A sings. ||| A jumps. ||| who = 4.5 ; what they do there = 1\n"
    )
    invoke(path, "--resamples", 10, "--json", output)
    report = Report.from_json(output)
    assert (report.rows, report.contrasting_pairs) == (4, 2)
    assert report.model.metrics["pair_accuracy"].value == 50


def test_evaluate_columns_are_options(data, tmp_path):
    own = tmp_path / "own.csv"
    text = data.read_text().replace("sentence1,sentence2,condition,label", "left,right,about,same")
    own.write_text(text.replace(",", "|").replace("|5", "|yes").replace("|1\n", "|no\n"))
    names = "--text1 left --text2 right --condition-column about --label same".split()
    for file, options in (data, []), (own, names):
        output = file.with_suffix(".json")
        invoke(file, *options, "--resamples", 20, "--json", output)
    reports = [Report.from_json(tmp_path / f"{name}.json") for name in ("dev", "own")]
    assert reports[0].model.metrics["spearman"] == reports[1].model.metrics["spearman"]


def test_evaluate_condition_only_of_one_condition_is_a_dash(tmp_path):
    rows = [f"Lamp {row}.,Bulb {row}.,the size,{1 + row % 5}" for row in range(40)]
    path = tmp_path / "one.csv"
    path.write_text("sentence1,sentence2,condition,label\n" + "\n".join(rows) + "\n")
    table = invoke(path, "--resamples", 20, "--markdown").stdout
    (cells,) = (line.split("|") for line in table.splitlines() if line.startswith("| condition-"))
    assert [cell.strip() for cell in cells[2:4]] == ["-", "-"]


def test_evaluate_condition_only_below_zero_has_a_note(tmp_path):
    # Each condition is alike in half of the rows: what other folds have more of is wrong here.
    rows = [
        f"Lamp {row}.,Bulb {row}.,{condition},{5 if (row + shift) % 2 else 1}"
        for row in range(20)
        for shift, condition in enumerate(("the size", "the color"))
    ]
    path = tmp_path / "balanced.csv"
    path.write_text("sentence1,sentence2,condition,label\n" + "\n".join(rows) + "\n")
    table = invoke(path, "--resamples", 20, "--markdown").stdout
    assert "condition-only: below 0 (or 50 %) it carries no information" in table
