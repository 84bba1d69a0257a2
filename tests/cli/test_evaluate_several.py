"""Several models, several files, and the data sets of a suite."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial

import pytest
from tests import commands

from condsim.evaluation.suite import SuiteReport
from condsim.model.settings import DEFAULT_FOLDER, ModelSettings

pytest.importorskip("sklearn")

invoke, fault = partial(commands.succeed, "evaluate"), partial(commands.fault, "evaluate")
WORDS = ("dog", "cat", "bird", "child", "man", "girl")
BASELINES = ("--baseline", "word-overlap", "--baseline", "condition-only")


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


def test_evaluate_several_against_is_measured_too(files, tmp_path):
    result = invoke(
        *(files[0], "--model", "a=word-overlap", "--model", "b=word-overlap"),
        *("--against", "default", "--resamples", 10, "--markdown"),
    )
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
        (["--suite", "written", "other"], "--suite takes one argument"),
    ],
)
def test_evaluate_options_that_do_not_apply_refused(files, arguments, message):
    assert message in fault(files[0].parent, *arguments)


def test_evaluate_criteria_groups_by_what_the_model_says(files, tmp_path):
    lines = [
        f"{name},{line}\n"
        for name, path in zip(("pets", "farms"), files, strict=True)
        for line in path.read_text().splitlines()[1:]
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    header = "set,sentence1,sentence2,condition,label\n"
    (folder / "dev_rows.csv").write_text(header + "".join(lines))
    model = tmp_path / "model"
    shutil.copytree(DEFAULT_FOLDER, model)
    settings = ModelSettings.load(model)
    replace(settings, facts={"criteria_sets": "farms, moons"}).save(model)
    arguments = ("--suite", "criteria", folder, "--resamples", 20, "--model", model)
    invoke(*arguments, "--json", tmp_path / "own.json", *BASELINES)
    report = SuiteReport.from_json(tmp_path / "own.json")
    assert [(column.key, column.group) for column in report.columns] == [
        ("farms", "trained on"),
        ("pets", "left out of training"),
    ]
    assert [row.name for row in report.rows] == ["word-overlap", "condition-only", "model"]
    assert report.rows[0].figures["avg"]["pair_accuracy"].value == 50
    invoke(*arguments, "--json", tmp_path / "given.json", "--trained-on", "pets")
    groups = [column.group for column in SuiteReport.from_json(tmp_path / "given.json").columns]
    assert groups == ["trained on", "left out of training"]
