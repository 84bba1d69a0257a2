from __future__ import annotations

import csv
import json

import pytest
from papers.suite.__main__ import app
from typer.testing import CliRunner

from condsim.errors import InputError
from condsim.evaluation.suite import SuiteReport

pytest.importorskip("sklearn")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def data(data_sets):
    """SICK and STS-B, six pairs each."""
    data_sets.stsb()
    data_sets.sick()
    return data_sets.root


def test_suite_prints_the_table_and_writes_every_file(data, tmp_path):
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv")}
    result = invoke(
        *("sts", "--data", data, "--model", "words=word-overlap", "--bootstrap"),
        *("--resamples", 20, "--json", files["json"], "--csv", files["csv"]),
    )
    assert result.exit_code == 0, result.output
    assert "| Model | STS-B | SICK-R |" in result.output
    assert "| **words** |" in result.output
    report = SuiteReport.from_json(files["json"])
    names = ["tfidf-cosine", "word-overlap", "words"]
    assert [row.name for row in report.rows] == names
    assert report.against == "words"
    with files["csv"].open(encoding="utf-8") as stream:
        assert [line["model"] for line in csv.DictReader(stream)][-1] == "words"


def test_suite_markdown_of_the_bundled_model(data):
    result = invoke("all", "--data", data, "--condition", "the animal")
    assert result.exit_code == 0
    assert "under 'the animal'" in result.output
    assert "| **default** |" in result.output
    assert "| *Avg. GloVe (SSBC)* |" in result.output


def test_suite_against_is_measured_too(data, tmp_path):
    path = tmp_path / "out.json"
    arguments = ("sts", "--data", data, "--model", "a=word-overlap", "--bootstrap")
    against = ("--against", "b=tfidf-cosine", "--resamples", 10, "--json", path)
    assert invoke(*arguments, *against).exit_code == 0
    content = json.loads(path.read_text())
    assert content["against"] == "b"
    assert [row["name"] for row in content["rows"]][2:] == ["b", "a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stss"], "Unknown suite 'stss'. Did you mean 'sts'"),
        (["afs"], "has no data of the suite 'afs'"),
        (["sts", "--against", "x"], "give --bootstrap as well"),
        (["sts", "--condition", " "], "--condition must have text"),
    ],
)
def test_suite_bad_options_are_one_line(data, arguments, message):
    result = invoke("--data", data, *arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
