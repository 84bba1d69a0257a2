from __future__ import annotations

import json

import typer
from typer.testing import CliRunner

from condsim.cli.process import guard
from condsim.cli.robustness import robustness
from condsim.errors import InputError

APP = typer.Typer()
APP.command()(robustness)
guard(APP)


def test_robustness_command_shows_and_writes(tmp_path):
    path, output = tmp_path / "own.csv", tmp_path / "result.json"
    path.write_text(
        "sentence1,sentence2,condition_group,condition\n"
        "A dog barks.,A cat sleeps.,animal,the animal\n"
        "A dog barks.,A cat sleeps.,animal,Which animal is it?\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(APP, [str(path), "--json", str(output), "--resamples", "10"])
    assert result.exit_code == 0, result.output
    assert "1 pairs, 2 wordings" in result.output
    assert "bar of 0.05" in result.output
    assert json.loads(output.read_text("utf-8"))["rows"] == 2


def test_robustness_command_bad_output_refused_first(tmp_path):
    result = CliRunner().invoke(APP, ["--json", str(tmp_path / "no" / "result.json")])
    assert isinstance(result.exception, InputError)
    assert "--json: the folder" in str(result.exception)
