from __future__ import annotations

import csv
import logging

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.evaluate import evaluate
from condsim.cli.process import guard
from condsim.data.csts import load_csts
from condsim.errors import InputError
from condsim.evaluation.metrics import over_estimation
from condsim.evaluation.report import Report
from condsim.loading import open_scorer
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(evaluate)
guard(APP)
ROWS = 24


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

    def open_scorer(model):
        names.append(model)
        return LengthScorer(model or "default")

    monkeypatch.setattr("condsim.loading.open_scorer", open_scorer)
    return names


@pytest.fixture
def data(tmp_path):
    # Label 5 under the long condition, 1 under the short one; the last row has no label.
    path = tmp_path / "dev.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sentence1", "sentence2", "condition", "label"])
        for row in range(ROWS):
            condition = "the colour of the lamp" if row % 2 else "the size"
            label = -1 if row == ROWS - 1 else 5 if row % 2 else 1
            pair = row // 2
            writer.writerow([f"Lamp {pair} is on.", f"Lamp {pair} is off.", condition, label])
    return path


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def test_evaluate_prints_model_and_condition_only(data, loaded):
    result = invoke(data, "--resamples", 20)
    assert result.exit_code == 0
    assert loaded == [None]
    lines = [line.split() for line in result.output.splitlines() if line.strip()]
    model = next(line for line in lines if line[0] == "default")
    assert model[1:3] == ["100.0", "100.0"]
    assert any(line[0] == "condition-only" for line in lines)
    assert "23 rows with a label in 12 sentence pairs, 1 without one left out" in result.output


def test_evaluate_json_is_the_report(data, tmp_path):
    output = tmp_path / "report.json"
    result = invoke(data, "--resamples", 20, "--seed", 3, "--json", output)
    assert result.exit_code == 0
    report = Report.from_json(output)
    assert report.model.metrics["pair_accuracy"].value == 100
    assert (report.seed, report.resamples, report.contrasting_pairs) == (3, 20, 11)


def test_evaluate_markdown_with_every_option(data, loaded):
    result = invoke(
        *(data, "--model", "better", "--against", "worse", "--train", data),
        *("--baseline", "word-overlap", "--baseline", "sentences-only"),
        *("--baseline", "condition-only", "--resamples", 20, "--markdown"),
    )
    assert result.exit_code == 0
    assert loaded == ["better", "worse"]
    table = [line for line in result.output.splitlines() if line.startswith("|")]
    names = [line.split("|")[1].strip() for line in table[2:]]
    assert names == [
        "**better**",
        "worse",
        "condition-only",
        "word-overlap",
        "sentences-only",
        "difference from worse",
    ]
    assert "condition-only is fitted on dev " in result.output


def test_evaluate_says_what_a_slow_model_has_to_say(data, monkeypatch, caplog):
    caplog.set_level("WARNING", logger="condsim.contexts")  # as it is at first, and again later
    caplog.handler.setLevel("INFO")
    told = logging.getLogger("condsim.contexts")

    def score(self, sentences1, sentences2, conditions):
        told.info("%s: %d pairs, about 3 h", self.name, len(sentences1))
        return np.zeros(len(sentences1), np.float32)

    monkeypatch.setattr(LengthScorer, "score", score)
    invoke(data, "--model", "origin", "--resamples", 20)
    assert "origin: 23 pairs, about 3 h" in caplog.messages


def test_evaluate_unknown_baseline_is_an_error_before_anything_loads(data, loaded):
    result = invoke(data, "--baseline", "word-overlp")
    assert isinstance(result.exception, InputError)
    assert "Did you mean 'word-overlap'" in str(result.exception)
    assert loaded == []


def test_evaluate_json_in_a_missing_folder_is_an_early_error(data, tmp_path, loaded):
    result = invoke(data, "--json", tmp_path / "none" / "report.json")
    assert isinstance(result.exception, InputError)
    assert "does not exist" in str(result.exception)
    result = invoke(data, "--json", tmp_path)
    assert isinstance(result.exception, InputError)
    assert "is a folder" in str(result.exception)
    assert loaded == []


def test_evaluate_file_without_labels_is_an_error(tmp_path, loaded):
    path = tmp_path / "test.csv"
    path.write_text("sentence1,sentence2,condition,label\nA lamp.,A bulb.,the size,-1\n")
    result = invoke(path)
    assert isinstance(result.exception, InputError)
    assert loaded == []


def test_evaluate_no_resamples_is_an_error(data):
    result = invoke(data, "--resamples", 0)
    assert result.exit_code == 2


def test_evaluate_help_has_examples():
    result = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    assert "condsim evaluate dev.csv" in result.output


def test_evaluate_over_estimation_is_printed_and_in_the_json(data, tmp_path):
    output = tmp_path / "report.json"
    options = (data, "--resamples", 20, "--over-estimation")
    result = invoke(*options, "--against", "worse", "--json", output)
    assert result.exit_code == 0
    report = Report.from_json(output)
    # the long condition (22 characters) scores .44 at gold 1, the short one (8) .16 at gold 0
    found = report.model.over_estimation
    assert (found.pairs, found.either) == (11, 0)
    assert (found.high_error, found.low_error) == pytest.approx((-0.56, 0.16))
    assert report.against.over_estimation.high_error == pytest.approx(-1.44)
    lines = [line.split() for line in result.output.splitlines()]
    assert ["default", "0", "0", "0", "0.0", "-0.560", "+0.160"] in lines
    assert ["worse", "0", "0", "0", "0.0", "-1.440", "-0.160"] in lines
    assert "| worse | 0 | 0 | 0 |" in invoke(*options, "--against", "worse", "--markdown").output


def test_evaluate_plot_is_written_and_nothing_scored_twice(data, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    score, names = LengthScorer.score, []

    def counting(self, *rows):
        names.append(self.name)
        return score(self, *rows)

    monkeypatch.setattr(LengthScorer, "score", counting)
    picture = tmp_path / "over.png"
    options = (data, "--resamples", 20, "--over-estimation")
    for more in ((), ("--against", "worse")):
        result = invoke(*options, *more, "--plot", picture)
        assert result.exit_code == 0
        assert picture.read_bytes().startswith(b"\x89PNG")
        picture.unlink()
    assert names == ["default", "default", "worse"]


def test_evaluate_plot_bad_options_are_early_errors(data, tmp_path, loaded):
    for options, message in (
        (("--plot", tmp_path / "p.png"), "give --over-estimation as well"),
        (("--over-estimation", "--plot", tmp_path / "p.pdf"), "must be .png"),
        (("--over-estimation", "--plot", tmp_path / "none" / "p.png"), "does not exist"),
        (("--over-estimation", "--plot", tmp_path), "is a folder"),
    ):
        result = invoke(data, *options)
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
    assert loaded == []


def test_evaluate_over_estimation_without_pairs_is_one_line(tmp_path):
    path = tmp_path / "single.csv"
    rows = [f"Lamp {row}.,A bulb.,the size,{row + 1}" for row in range(4)]
    path.write_text("\n".join(["sentence1,sentence2,condition,label", *rows]) + "\n")
    result = invoke(path, "--over-estimation")
    assert isinstance(result.exception, InputError)
    message = str(result.exception)
    assert message.startswith("single: over-estimation is counted on pairs of rows")
    assert "\n" not in message


def test_evaluate_over_estimation_with_the_bundled_model(data, tmp_path, monkeypatch):
    monkeypatch.setattr("condsim.loading.open_scorer", open_scorer)  # the real one
    output = tmp_path / "report.json"
    options = (data, "--resamples", 5, "--over-estimation", "--json", output)
    assert invoke(*options).exit_code == 0
    task = load_csts(data)
    cosines = OnnxScorer(DEFAULT_FOLDER).score(
        task.sentences1, task.sentences2, task.conditions, scale="raw"
    )
    found, expected = Report.from_json(output).model.over_estimation, over_estimation(cosines, task)
    assert (found.pairs, found.either) == (expected.pairs, expected.either)
    # without the unlabelled row the batches differ, and int8 with them, a little
    assert found.high_error == pytest.approx(expected.high_error, abs=0.01)
    assert found.low_error == pytest.approx(expected.low_error, abs=0.01)


def test_evaluate_written_pairs_are_a_labelled_file(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(
        "a ||| A runs. ||| B runs. ||| who = 1 ; what they do = 5\n"
        "b ||| A sings. ||| A jumps. ||| who = 4.5 ; what they do there = 1\n"
    )
    arguments = [str(path), "--resamples", "10", "--json", str(tmp_path / "out.json")]
    result = CliRunner().invoke(APP, arguments)
    assert result.exit_code == 0, result.output
    report = Report.from_json(tmp_path / "out.json")
    assert (report.rows, report.contrasting_pairs) == (4, 2)
    assert report.model.metrics["pair_accuracy"].value == 50


def test_evaluate_columns_are_options(data, tmp_path):
    own = tmp_path / "own.csv"
    text = data.read_text().replace("sentence1,sentence2,condition,label", "left,right,about,same")
    own.write_text(text.replace(",", "|").replace("|5", "|yes").replace("|1\n", "|no\n"))
    names = ("--text1", "left", "--text2", "right", "--condition-column", "about")
    options = ("--resamples", 20, "--json")
    assert invoke(data, *options, tmp_path / "usual.json").exit_code == 0
    result = invoke(own, *names, "--label", "same", *options, tmp_path / "own.json")
    assert result.exit_code == 0, result.exception
    reports = [Report.from_json(tmp_path / f"{name}.json") for name in ("usual", "own")]
    assert reports[0].model.metrics["spearman"] == reports[1].model.metrics["spearman"]
