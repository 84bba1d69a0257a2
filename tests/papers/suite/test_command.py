from __future__ import annotations

import csv
import json

import pytest
from papers.suite.__main__ import app
from typer.testing import CliRunner

from condsim.errors import InputError
from condsim.evaluation.suite import SuiteReport

pytest.importorskip("sklearn")

WORDS = ("dog", "cat", "bird", "child", "man", "girl")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path):
    """SICK and STS-B, six pairs each."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [
        (f"A {word} plays on the street.", f"A {WORDS[row // 2]} plays {row * 'well '}.", row)
        for row, word in enumerate(WORDS)
    ]
    sick = "".join(f"{a}\t{b}\t{1 + s * 0.8:.1f}\n" for a, b, s in rows)
    (folder / "sick_test.tsv").write_text("sentence_A\tsentence_B\trelatedness_score\n" + sick)
    stsb = "".join(f"g\tf\t2012\t1\t{s}\t{a}\t{b}\n" for a, b, s in rows)
    (folder / "sts-test.csv").write_text(stsb)
    return folder


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
    result = invoke("all", "--data", data)
    assert result.exit_code == 0
    assert "| **default** |" in result.output
    assert "| *Avg. GloVe (SSBC)* |" in result.output


def test_suite_condition_is_named_below_the_table(data):
    result = invoke("sts", "--data", data, "--condition", "the animal")
    assert "under 'the animal'" in result.output


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
