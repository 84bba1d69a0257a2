"""Several models, several files, and the data sets of a suite."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.evaluate import evaluate
from condsim.cli.process import guard
from condsim.errors import InputError
from condsim.evaluation.suite import SuiteReport
from condsim.model.settings import DEFAULT_FOLDER, ModelSettings

pytest.importorskip("sklearn")

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(evaluate)
guard(APP)
WORDS = ("dog", "cat", "bird", "child", "man", "girl")
BASELINES = ("--baseline", "word-overlap", "--baseline", "condition-only")


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path):
    """Two files of twelve rows, each text pair under two conditions."""
    paths = []
    for name in ("mails", "tickets"):
        rows = [
            f"A {word} runs,A {word} sits,the {aspect},{label}\n"
            for word in WORDS
            for aspect, label in (("animal", 5), ("action", 1))
        ]
        path = tmp_path / f"{name}.csv"
        path.write_text("sentence1,sentence2,condition,label\n" + "".join(rows))
        paths.append(path)
    return paths


def test_evaluate_several_files_and_models_prints_a_row_for_each_file(files, tmp_path):
    result = invoke(
        *files,
        *("--model", "default", "--model", "words=word-overlap", "--resamples", 20),
        *("--json", tmp_path / "out.json", "--csv", tmp_path / "out.csv"),
    )
    assert result.exit_code == 0, result.output
    for text in ("mails", "tickets", "mean of all 2", "words"):
        assert text in result.output
    report = SuiteReport.from_json(tmp_path / "out.json")
    assert [row.name for row in report.rows] == ["default", "words"]
    assert report.against == "default"
    with (tmp_path / "out.csv").open(encoding="utf-8") as stream:
        assert {line["task"] for line in csv.DictReader(stream)} == {"mails", "tickets", "avg"}


def test_evaluate_several_against_is_measured_too(files, tmp_path):
    result = invoke(
        *(files[0], "--model", "a=word-overlap", "--model", "b=word-overlap"),
        *("--against", "default", "--resamples", 10, "--markdown"),
    )
    assert result.exit_code == 0, result.output
    assert "| Set | rows | conditions | default: Spearman |" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "sts"], "Unknown suite 'sts'"),
        (["--suite", "written"], "has no data of the suite 'written'"),
        (["--trained-on", "x"], "--trained-on is for --suite criteria only"),
        (["--csv", "x.csv"], "--csv is for several models or files"),
        (["--suite", "written", "--train", "x"], "--train is for a single model"),
        (["--model", "a", "--model", "b", "--over-estimation"], "--over-estimation is for a"),
        (["--plot", "x.png"], "give --over-estimation as well"),
        (["--suite", "written", "other"], "--suite takes one argument"),
    ],
)
def test_evaluate_options_that_do_not_apply_are_one_line(files, arguments, message):
    result = invoke(files[0].parent, *arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_evaluate_criteria_groups_by_what_the_model_says(tmp_path):
    header = "set,sentence1,sentence2,condition,label\n"
    rows = [
        f"{name},A {word} runs,A {word} sits,the {what},{label}\n"
        for name in ("pets", "farms")
        for word in WORDS
        for what, label in (("animal", 5), ("action", 1))
    ]
    (tmp_path / "dev_rows.csv").write_text(header + "".join(rows))
    model = tmp_path / "model"
    shutil.copytree(DEFAULT_FOLDER, model)
    settings = ModelSettings.load(model)
    replace(settings, facts={"criteria_sets": "farms, moons"}).save(model)
    arguments = ("--suite", "criteria", tmp_path, "--resamples", 20, "--model", model)
    result = invoke(*arguments, "--json", tmp_path / "own.json", *BASELINES)
    assert result.exit_code == 0, result.output
    report = SuiteReport.from_json(tmp_path / "own.json")
    assert [(column.key, column.group) for column in report.columns] == [
        ("farms", "trained on"),
        ("pets", "left out of training"),
    ]
    assert [row.name for row in report.rows] == ["word-overlap", "condition-only", "model"]
    assert report.rows[0].figures["avg"]["pair_accuracy"].value == 50
    result = invoke(*arguments, "--json", tmp_path / "given.json", "--trained-on", "pets")
    assert result.exit_code == 0, result.output
    groups = [column.group for column in SuiteReport.from_json(tmp_path / "given.json").columns]
    assert groups == ["trained on", "left out of training"]
