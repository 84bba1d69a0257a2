from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.evaluate import evaluate
from condsim.errors import InputError
from condsim.evaluation.suite.result import SuiteReport
from condsim.model.settings import DEFAULT_FOLDER, Settings

pytest.importorskip("sklearn")

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(evaluate)
WORDS = ("dog", "cat", "bird", "child", "man", "girl")


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path, monkeypatch):
    """SICK and STS-B, six pairs each, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
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
    pytest.importorskip("matplotlib")
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "png")}
    result = invoke(
        *("--suite", "sts", "--data", data, "--model", "words=word-overlap", "--bootstrap"),
        *("--resamples", 20, "--json", files["json"], "--csv", files["csv"]),
        *("--plot", files["png"]),
    )
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines() if line.strip()]
    assert ["Model", "STS-B", "SICK-R"] in rows
    assert any(row[0] == "words" for row in rows)
    assert "published, SSBC:" in result.output
    report = SuiteReport.from_json(files["json"])
    names = ["tfidf-cosine", "word-overlap", "words"]
    assert [row.name for row in report.rows] == names
    assert report.against == "words"
    with files["csv"].open(encoding="utf-8") as stream:
        assert [line["model"] for line in csv.DictReader(stream)][-1] == "words"
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert list((tmp_path / "cache" / "condsim" / "suite").iterdir())


def test_suite_markdown_of_the_bundled_model(data):
    result = invoke("--suite", "all", "--data", data, "--markdown", "--cache", "off")
    assert result.exit_code == 0
    assert "| **default** |" in result.output
    assert "| *Avg. GloVe (SSBC)* |" in result.output


def test_suite_condition_is_named_below_the_table(data):
    result = invoke("--suite", "sts", "--data", data, "--condition", "the animal", "--markdown")
    assert "under 'the animal'" in result.output


def test_suite_against_is_measured_too(data, tmp_path):
    path = tmp_path / "out.json"
    arguments = ("--suite", "sts", "--data", data, "--model", "a=word-overlap", "--bootstrap")
    against = ("--against", "b=tfidf-cosine", "--resamples", 10, "--json", path)
    assert invoke(*arguments, *against).exit_code == 0
    content = json.loads(path.read_text())
    assert content["against"] == "b"
    assert [row["name"] for row in content["rows"]][2:] == ["b", "a"]


def test_suite_kept_scores_load_no_torch_and_no_model(data, tiny_backbone, tmp_path):
    pytest.importorskip("torch")
    arguments = ["--suite", "sts", "--data", str(data), "--model", f"mean:{tiny_backbone}"]
    assert invoke(*arguments).exit_code == 0
    code = (
        "import sys\n"
        "from condsim.cli.main import app\n"
        "app(args=['evaluate', *sys.argv[1:]], standalone_mode=False)\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'sentence_transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "stss"], "Unknown suite 'stss'. Did you mean 'sts'"),
        (["--suite", "afs"], "has no data of the suite 'afs'"),
        (["--suite", "sts", "--baseline", "x"], "--baseline is not for --suite"),
        (["--suite", "sts", "--baselines"], "--baselines is for --suite criteria and written only"),
        (["--suite", "sts", "--trained-on", "x"], "--trained-on is for --suite criteria only"),
        (["--baselines"], "--baselines is for --suite only"),
        (["--suite", "written", "--condition", "x"], "--condition is not for --suite written"),
        (["--suite", "sts", "--train", "x"], "--train is not for --suite"),
        (["--suite", "sts", "--over-estimation"], "--over-estimation is not for --suite"),
        (["--suite", "sts", "--against", "x"], "give --bootstrap as well"),
        (["--suite", "sts", "--aggregation", "men"], "Unknown aggregation 'men'"),
        (["--suite", "sts", "--precision", "half"], "Unknown precision 'half'"),
        (["--precision", "float32"], "--precision is for --suite only"),
        (["--suite", "sts", "--condition", " "], "--condition: must have text"),
        (["--suite", "sts", "--plot", "x.pdf"], "must end in .png"),
        (["--bootstrap"], "--bootstrap is for --suite only"),
        (["--csv", "x.csv"], "--csv is for --suite only"),
        (["--model", "a", "--model", "b"], "a second --model is for --suite only"),
    ],
)
def test_suite_bad_options_are_one_line(data, arguments, message):
    result = invoke("--data", data, *arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_suite_criteria_groups_by_what_the_model_says(data, tmp_path):
    header = "set,sentence1,sentence2,condition,label\n"
    rows = [
        f"{name},A {word} runs,A {word} sits,the {what},{label}\n"
        for name in ("pets", "farms")
        for word in WORDS
        for what, label in (("animal", 5), ("action", 1))
    ]
    (data / "dev_rows.csv").write_text(header + "".join(rows))
    model = tmp_path / "model"
    shutil.copytree(DEFAULT_FOLDER, model)
    settings = Settings.load(model)
    replace(settings, facts={"criteria_sets": "farms, moons"}).save(model)
    arguments = ("--suite", "criteria", "--data", data, "--resamples", 20, "--model", model)
    result = invoke(*arguments, "--json", tmp_path / "own.json", "--baselines")
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
