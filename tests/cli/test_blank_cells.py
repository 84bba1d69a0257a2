"""Commands that read a file whole leave out the rows without text, and count them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.errors import InputError
from condsim_llm.backend import Answer

HEADER = "sentence1,sentence2,condition_group,condition,label\n"
BLANK_ROWS = "A dog.,A cat.,animal,,5\n,A cat.,animal,the animal,5\n"
COMMANDS = {
    "data check": "",
    "robustness": "--resamples 5",
    "applicability evaluate": "--resamples 5",
    "applicability fit": "--output head.json",
    "prompt": "--model fake --resamples 5 --train pairs.csv --shots 2",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_without_text_left_out_counted_and_strict_stops(
    command, tmp_path, fake_backend, monkeypatch
):
    backend = fake_backend(lambda prompt: Answer("2", {}, prompt_tokens=5, new_tokens=1))
    monkeypatch.setattr("condsim_llm.scorer.open_backend", lambda settings: backend)
    monkeypatch.chdir(tmp_path)
    rows = [
        f"The {thing} is {state} {number}.,A {thing} {number}.,animal,{condition},{label}\n"
        for number in range(6)
        for thing, state, label in (("dog", "big", 4), ("lamp", "on", -1), ("cat", "old", 2))
        for condition in ("the animal", "the kind of animal")
    ]
    (tmp_path / "pairs.csv").write_text(HEADER + BLANK_ROWS + "".join(rows), encoding="utf-8")
    words = [*command.split(), "pairs.csv", *COMMANDS[command].split()]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "1 row has no condition and thus no " in result.stderr
    assert "1 row has no text and thus no " in result.stderr
    assert "(row 2); --strict stops there." in result.stderr
    error = CliRunner().invoke(app, [*words, "--strict"]).exception
    assert isinstance(error, InputError)
    assert "row 1 (line 2), column 'condition': must not be empty." in str(error)
    assert "Also blank: row 2." in str(error)
