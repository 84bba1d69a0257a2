from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.errors import InputError

ROWS = (
    "sentence1,sentence2,condition,label\n"
    "A cat sits.,A dog runs.,the animal,2\n"
    "A cat sits.,A dog runs.,[red]the legs,5\n"
    "A cat sits.,A bird flies.,the animal,-1\n"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["data", *(str(argument) for argument in arguments)])


def test_check_tables_printed(file):
    result = run("check", file)
    assert result.exit_code == 0
    for text in ("pairs, revision", "unlabeled or invalid", "High minus low", "the animal"):
        assert text in result.output


def test_check_condition_with_markup_printed_as_is(file):
    assert "[red]the legs" in run("check", file).output


def test_check_file_name_with_markup_printed_as_is(file):
    assert "[red]pairs" in run("check", file.rename(file.with_name("[red]pairs.csv"))).output


def test_check_json_parses(file):
    result = run("check", file, "--json", "--top", 1)
    read = json.loads(result.output)
    assert (read["rows"], read["unlabelled_rows"], read["mean_gap"]) == (3, 1, 3.0)
    assert read["frequent_conditions"] == {"the animal": 2}


def test_check_unlabelled_file_printed(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"sentence1": "A", "sentence2": "B", "condition": "C"}\n', encoding="utf-8")
    result = run("check", path, "--top", 0)
    assert result.exit_code == 0
    assert "High minus low" not in result.output


def test_check_bad_file_raises_input_error(file):
    file.write_text("sentence1,sentence2\nA,B\n", encoding="utf-8")
    result = run("check", file)
    assert isinstance(result.exception, InputError)


def test_check_top_negative_refused(file):
    assert run("check", file, "--top", -1).exit_code == 2


def test_app_word_check_needed(file):
    assert run(file).exit_code == 2


def test_check_help_has_examples():
    output = run("check", "--help").output
    assert "Examples" in output
    assert "condsim data check pairs.jsonl" in output
