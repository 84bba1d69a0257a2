from __future__ import annotations

import csv
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.errors import BudgetError, InputError
from condsim.prompting.backend import Answer
from condsim.prompting.scorer import PromptReport

ROWS = 24


def write(path: Path, rows: int, prefix: str) -> Path:
    """Label 5 under the long condition, 1 under the short one; the last row has no label."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sentence1", "sentence2", "condition", "label"])
        for row in range(rows):
            condition = "the colour of the lamp" if row % 2 else "the size"
            label = -1 if row == rows - 1 else 5 if row % 2 else 1
            writer.writerow(
                [f"{prefix} {row // 2} is on.", f"{prefix} {row // 2} is off.", condition, label]
            )
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "dev.csv", ROWS, "Lamp")


@pytest.fixture
def backend(fake_backend: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    counter = itertools.count()

    def reply(prompt: str) -> Answer:
        text = "no idea" if next(counter) == 0 else "4" if "colour" in prompt[-90:] else "2.0"
        return Answer(text, {}, prompt_tokens=50, new_tokens=2)

    made = fake_backend(reply)
    monkeypatch.setattr("condsim.prompting.scorer.open_backend", lambda settings: made)
    return made


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["prompt", *map(str, arguments)])


def options(data: Path, **more: object) -> list[object]:
    given = {"model": "fake", "data": data, "answers": data.parent / "answers.sqlite", **more}
    return [part for name, value in given.items() for part in (f"--{name}", value)]


def test_prompt_prints_the_table_and_the_counts(data: Path, backend: Any):
    result = run(*options(data, resamples=10))
    assert result.exit_code == 0, result.output
    assert "condition-only" in result.output
    assert re.search(r"4\.35 %\s+0\.00 %", result.output)  # 1 of 23 rows is invalid
    assert "23 requests, 1150 tokens in prompts and 46 in answers" in result.output
    assert run(*options(data, resamples=10)).exit_code == 0
    assert len(backend.asked) == 23


def test_prompt_writes_report_predictions_and_settings(data: Path, backend: Any, tmp_path: Path):
    files = {
        "json": tmp_path / "r.json",
        "predictions": tmp_path / "p.csv",
        "save": tmp_path / "s.yaml",
    }
    result = run(*options(data, resamples=10, **files), "--examples", "3")
    assert result.exit_code == 0, result.output
    assert json.loads(files["json"].read_text())["settings"]["model"] == "fake"
    with files["predictions"].open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 23
    assert [row["valid"] for row in rows].count("0") == 1
    assert {row["answer"] for row in rows} == {"no idea", "4", "2.0"}
    assert rows[5]["condition"] == "the colour of the lamp"
    assert rows[5]["prediction"] == "4"
    assert "Predictions" in result.output
    saved = files["save"].read_text()
    assert "model: fake" in saved


def test_prompt_saved_settings_are_a_model_for_evaluate(data: Path, backend: Any, tmp_path: Path):
    run(*options(data, resamples=10, save=tmp_path / "s.yaml"))
    result = CliRunner().invoke(app, ["evaluate", str(data), "--model", str(tmp_path / "s.yaml")])
    assert result.exit_code == 0, result.output
    assert len(backend.asked) == 23  # nothing was asked again


def test_prompt_examples_show_brackets_as_they_are(
    data: Path, backend: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backend, "reply", lambda prompt: Answer("[/INST] 4 [bold]"))
    result = run(*options(data, resamples=10), "--examples", "3")
    assert result.exit_code == 0, result.output
    assert "[/INST]" in result.output


def test_prompt_report_comes_before_a_file_that_cannot_be_written(
    data: Path, backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(report: object, path: Path) -> None:
        raise InputError(f"{path} cannot be written")

    monkeypatch.setattr(PromptReport, "to_json", refuse)
    result = run(*options(data, resamples=10, json=tmp_path / "r.json"))
    assert isinstance(result.exception, InputError)
    assert "condition-only" in result.output


def test_prompt_stopped_says_what_is_kept(data: Path, backend: Any):
    asked = itertools.count()

    def reply(prompt: str) -> Answer:
        if next(asked) == 5:
            raise KeyboardInterrupt
        return Answer("3")

    backend.reply = reply
    result = run(*options(data))
    assert result.exit_code == 130
    assert "the same command continues" in result.output


def test_prompt_dry_run_prints_prompts_requests_and_tokens_and_asks_nothing(
    data: Path, backend: Any, tmp_path: Path
):
    train = write(tmp_path / "train.csv", 12, "Door")
    result = run(*options(data, train=train, shots=2, instruction="short"), "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.output.count("--- row ") == 3
    assert result.output.count("Respond only with a score") == 3
    assert result.output.count("Door") == 3 * 4
    assert "23 requests, about 230 tokens in prompts and at most 460 in answers" in result.output
    assert "20 more; --show 0 prints all" in result.output
    assert backend.asked == []
    assert not (tmp_path / "answers.sqlite").exists()
    everything = run(*options(data), "--dry-run", "--show", "0")
    assert everything.output.count("--- row ") == 23


def test_prompt_budget_is_one_line_and_the_next_run_goes_on(data: Path, backend: Any):
    result = run(*options(data), "--max-requests", "10")
    assert isinstance(result.exception, BudgetError)
    assert "10 requests" in str(result.exception)
    assert "\n" not in str(result.exception)
    assert run(*options(data, resamples=10)).exit_code == 0
    assert len(backend.asked) == 23


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"shots": 2}, r"2 examples need a labeled training file"),
        ({"json": "nowhere/r.json"}, r"--json: the folder nowhere does not exist"),
        ({"predictions": "."}, r"--predictions: \. is a folder"),
        ({"timeout": 0}, r"'timeout' must be above 0"),
    ],
)
def test_prompt_bad_options_raise_one_line_before_asking(
    data: Path, backend: Any, more: dict[str, object], message: str
):
    result = run(*options(data, **more))
    assert isinstance(result.exception, InputError)
    assert re.search(message, str(result.exception))
    assert backend.asked == []


def test_prompt_more_shots_than_pairs_raises_before_asking(
    data: Path, backend: Any, tmp_path: Path
):
    train = write(tmp_path / "train.csv", 5, "Door")
    result = run(*options(data, train=train, shots=4))
    assert re.search(r"train: 4 examples need 3 sentence pairs", str(result.exception))
    assert backend.asked == []


def test_prompt_file_without_labels_raises(data: Path, backend: Any, tmp_path: Path):
    train = tmp_path / "train.csv"
    train.write_text("sentence1,sentence2,condition\na,b,c\n")
    result = run(*options(data, train=train, shots=2))
    assert isinstance(result.exception, InputError)
    assert "label" in str(result.exception)
    assert not isinstance(result.exception, typer.Exit)
