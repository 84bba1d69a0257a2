from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.explain import explain
from condsim.cli.process import guard
from condsim.errors import InputError

APP = typer.Typer()
APP.command()(explain)
guard(APP)
ROW = ["Three people watch a tennis match.", "A trio plays tennis.", "number of people"]


def run(*arguments):
    return CliRunner().invoke(APP, [*map(str, arguments)])


def test_explain_command_prints_the_sum_and_what_was_read():
    result = run(*ROW, "--samples", "20", "--top", "2")
    assert result.exit_code == 0, result.output
    assert result.output.count("(read: three)") == 2
    assert "all other words" in result.output
    assert result.output.splitlines()[-1].startswith("score ")


@pytest.mark.parametrize("name", ["why.html", "why.json", "why.png"])
def test_explain_command_writes_files(tmp_path, name):
    result = run(*ROW, "--samples", "5", "--output", tmp_path / name)
    assert result.exit_code == 0, result.output
    content = (tmp_path / name).read_bytes()
    if name.endswith("json"):
        assert json.loads(content)["texts"][0]["reading"] == "three"
    elif name.endswith("html"):
        assert content.startswith(b"<!doctype html>")
        assert "Three" in content.decode()
    else:
        assert content.startswith(b"\x89PNG")


def test_explain_command_explains_a_file_and_keeps_columns(tmp_path):
    path, output = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    path.write_text("id,sentence1,sentence2,condition\n7,A dog barks.,A cat sleeps.,the animal\n")
    result = run("--file", path, "--output", output, "--samples", "5", "--scale", "raw")
    assert result.exit_code == 0, result.output
    assert "1 rows explained" in result.output
    row = json.loads(output.read_text("utf-8"))
    assert (row["id"], row["condition"]) == ("7", "the animal")
    assert row["explanation"]["scale"] == "raw"
    assert len(row["explanation"]["texts"]) == 2


def test_explain_command_stopped_at_a_bad_row_before_the_work(tmp_path):
    path, output = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    path.write_text("sentence1,sentence2,condition\nA,B,c\nA,,c\n")
    result = run("--file", path, "--output", output, "--strict")
    assert isinstance(result.exception, InputError)
    assert "row 2" in str(result.exception)
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (ROW[:2], "Give two sentences and a condition"),
        ([*ROW, "--file", "x.csv", "--output", "y.jsonl"], "not both"),
        (["--file", "x.csv"], "needs --output"),
        (["--file", "x.csv", "--output", "y.html"], r"must be one of \.jsonl"),
        ([*ROW, "--output", "y.txt"], r"must be one of \.html"),
        ([*ROW, "--output", "nowhere/y.json", "--samples", "2"], "make the folder first"),
    ],
)
def test_explain_command_bad_input_is_one_line(arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    with pytest.raises(InputError, match=message):
        raise result.exception
    assert "\n" not in str(result.exception)


def test_explain_file_with_a_text_too_long_names_the_row_first(tmp_path):
    file = tmp_path / "in.jsonl"
    rows = [ROW, ["x" * 20_001, *ROW[1:]]]
    names = ("sentence1", "sentence2", "condition")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    file.write_text("\n".join(lines))
    result = run("--file", file, "--output", tmp_path / "out.jsonl")
    assert "row 2" in str(result.exception)
    assert isinstance(result.exception, InputError)


def test_explain_condition_may_be_an_option_and_is_given_once():
    options = ("--samples", "5")
    assert run(*ROW, *options).stdout == run(*ROW[:2], "--condition", ROW[2], *options).stdout
    error = run(*ROW, "--condition", "the sport").exception
    assert isinstance(error, InputError)
    assert "not both" in str(error)


def test_explain_file_under_one_condition(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    file.write_text("left,right\nA red car.,A red bus.\n")
    columns = ("--text1", "left", "--text2", "right")
    words = ("--file", file, *columns, "--samples", "5", "--output", output)
    assert "--condition" in str(run(*words).exception)
    assert run(*words, "--condition", "the colour").exit_code == 0
    assert json.loads(output.read_text())["explanation"]["condition"] == "the colour"


def test_explain_file_row_without_text_has_no_explanation(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    file.write_text("sentence1,sentence2,condition\nA,,c\nA dog.,A cat.,the animal\n")
    result = run("--file", file, "--output", output, "--samples", "5")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert rows[0]["explanation"] is None
    assert rows[1]["explanation"]["condition"] == "the animal"
    assert "1 row has no text and thus no explanation (row 1)" in result.output
    assert "1 rows explained" in result.output
