from __future__ import annotations

import json
from functools import partial

import pytest
from tests import commands

invoke, fault = partial(commands.succeed, "explain"), partial(commands.fault, "explain")
ROW = ["Three people watch a tennis match.", "A trio plays tennis.", "number of people"]
SHORT = ("--samples", "5")


def test_explain_prints_the_sum():
    result = invoke(*ROW, "--samples", "20", "--top", "2")
    assert "all other words" in result.output
    assert result.output.splitlines()[-1].startswith("score ")
    options = ("--condition", ROW[2], "--samples", "20", "--top", "2")
    assert invoke(*ROW[:2], *options).stdout == result.stdout


@pytest.mark.parametrize("name", ["why.html", "why.json", "why.png"])
def test_explain_writes_files(tmp_path, name):
    result = invoke(*ROW, *SHORT, "--output", tmp_path / name)
    assert f"{name}: the explanation of a score of 0." in result.output
    content = (tmp_path / name).read_bytes()
    if name.endswith("json"):
        assert json.loads(content)["texts"][0]["words"][0]["text"] == "Three"
    elif name.endswith("html"):
        assert content.startswith(b"<!doctype html>")
        assert "Three" in content.decode()
    else:
        assert content.startswith(b"\x89PNG")


def test_explain_file_keeps_columns_and_a_row_without_text_has_no_explanation(tmp_path):
    path, output = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    rows = "7,A dog barks.,A cat sleeps.,the animal\n8,A,,c\n"
    path.write_text(f"id,sentence1,sentence2,condition\n{rows}")
    result = invoke("--file", path, "--output", output, *SHORT, "--scale", "raw")
    assert "1 rows explained" in result.output
    assert "1 row has no text and thus no explanation (row 2)" in result.output
    row, blank = commands.rows_in(output)
    assert (row["id"], row["condition"]) == ("7", "the animal")
    assert row["explanation"]["scale"] == "raw"
    assert len(row["explanation"]["texts"]) == 2
    assert blank["explanation"] is None


@pytest.mark.parametrize(
    ("row", "options"), [(["A", "", "c"], ["--strict"]), (["x" * 20_001, "B", "c"], [])]
)
def test_explain_file_bad_row_is_named_before_the_work(tmp_path, row, options):
    path, output = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    path.write_text(f"sentence1,sentence2,condition\nA,B,c\n{','.join(row)}\n")
    assert "row 2" in fault("--file", path, "--output", output, *options)
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (ROW[:2], "Give two sentences and a condition"),
        ([*ROW, "--file", "x.csv", "--output", "y.jsonl"], "not both"),
        ([*ROW, "--condition", "the sport"], "not both"),
        (["--file", "x.csv"], "needs --output"),
        (["--file", "x.csv", "--output", "y.html"], "must be .jsonl"),
        ([*ROW, "--output", "y.txt"], "must be .html"),
        ([*ROW, "--output", "nowhere/y.json", "--samples", "2"], "make it first"),
    ],
)
def test_explain_bad_options_refused(arguments, message):
    assert message in fault(*arguments)


def test_explain_file_under_one_condition(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    file.write_text("left,right\nA red car.,A red bus.\n")
    words = ("--file", file, "--text1", "left", "--text2", "right", *SHORT, "--output", output)
    assert "--condition" in fault(*words)
    invoke(*words, "--condition", "the color")
    assert json.loads(output.read_text())["explanation"]["condition"] == "the color"
