from __future__ import annotations

import itertools
import json
import re
from functools import partial

import pytest
from tests import commands

from condsim.errors import InputError
from condsim_llm.backend import Answer
from condsim_llm.scorer import PromptReport

invoke, fault = partial(commands.invoke, "prompt"), partial(commands.fault, "prompt")


@pytest.fixture
def data(write_lamps):
    return write_lamps("dev.csv")


@pytest.fixture
def backend(fake_backend, monkeypatch):
    counter = itertools.count()

    def reply(prompt):
        text = "no idea" if next(counter) == 0 else "4" if "color" in prompt[-90:] else "2.0"
        return Answer(text, {}, prompt_tokens=50, new_tokens=2)

    backend = fake_backend(reply)
    monkeypatch.setattr("condsim_llm.scorer.open_backend", lambda settings: backend)
    return backend


def options(data, **more):
    values = {"model": "fake", "data": data, "answers": data.parent / "answers.sqlite", **more}
    return [part for name, value in values.items() for part in (f"--{name}", value)]


def test_prompt_prints_the_table_and_the_counts_and_asks_nothing_twice(data, backend):
    result = invoke(*options(data, resamples=10))
    assert result.exit_code == 0, result.output
    assert "condition-only" in result.output
    # 1 of 23 rows is invalid.
    assert re.search(r"4\.35 %\s+0\.00 %", result.output)
    assert "23 requests, 1150 tokens in prompts and 46 in answers" in result.output
    assert invoke(*options(data, resamples=10)).exit_code == 0
    assert len(backend.asked) == 23


def test_prompt_writes_report_predictions_and_settings_for_evaluate(data, backend, tmp_path):
    report, predictions, settings = (tmp_path / name for name in ("r.json", "p.csv", "s.yaml"))
    files = {"json": report, "predictions": predictions, "save": settings}
    result = invoke(*options(data, resamples=10, **files), "--examples", "3")
    assert result.exit_code == 0, result.output
    assert json.loads(report.read_text())["settings"]["model"] == "fake"
    rows = commands.rows_in(predictions)
    assert [row["valid"] for row in rows].count("0") == 1
    assert {row["answer"] for row in rows} == {"no idea", "4", "2.0"}
    assert (rows[5]["condition"], rows[5]["prediction"]) == ("the color of the lamp", "4")
    assert "Predictions" in result.output
    assert "model: fake" in settings.read_text()
    commands.succeed("evaluate", data, "--model", settings)
    assert len(backend.asked) == 23


def test_prompt_examples_show_brackets_as_they_are(data, backend, monkeypatch):
    monkeypatch.setattr(backend, "reply", lambda prompt: Answer("[/INST] 4 [bold]"))
    assert "[/INST]" in invoke(*options(data, resamples=10), "--examples", "3").output


def test_prompt_report_comes_before_a_file_that_cannot_be_written(
    data, backend, tmp_path, monkeypatch
):
    def refuse(report, path):
        raise InputError(f"{path} cannot be written")

    monkeypatch.setattr(PromptReport, "to_json", refuse)
    result = invoke(*options(data, resamples=10, json=tmp_path / "r.json"))
    assert isinstance(result.exception, InputError)
    assert "condition-only" in result.output


def test_prompt_stopped_says_how_to_continue(data, backend):
    counter = itertools.count()

    def reply(prompt):
        if next(counter) == 5:
            raise KeyboardInterrupt
        return Answer("3")

    backend.reply = reply
    result = invoke(*options(data))
    assert result.exit_code == 130
    assert "the same command continues" in result.output


def test_prompt_dry_run_prints_prompts_requests_and_tokens_and_asks_nothing(
    data, backend, tmp_path, write_lamps
):
    train = write_lamps("train.csv", rows=12, subject="Door")
    result = invoke(*options(data, train=train, shots=2, instruction="short"), "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.output.count("--- row ") == 3
    assert result.output.count("Respond only with a score") == 3
    assert result.output.count("Door") == 3 * 4
    assert "23 requests, about 230 tokens in prompts and at most 460 in answers" in result.output
    assert "20 more; --show 0 prints all" in result.output
    assert backend.asked == []
    assert not (tmp_path / "answers.sqlite").exists()
    assert invoke(*options(data), "--dry-run", "--show", "0").output.count("--- row ") == 23


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"shots": 2}, "2 examples need a labeled training file"),
        ({"shots": 4, "train": "five.csv"}, "five: 4 examples need 3 sentence pairs"),
        ({"shots": 2, "train": "unlabeled.csv"}, "label"),
        ({"json": "nowhere/r.json"}, "--json: the folder nowhere does not exist"),
        ({"predictions": "."}, "--predictions: . is a folder"),
        ({"timeout": 0}, "'timeout' must be above 0"),
    ],
)
def test_prompt_bad_options_refused_before_asking(
    data, backend, write_lamps, monkeypatch, more, message
):
    monkeypatch.chdir(data.parent)
    write_lamps("five.csv", rows=5)
    (data.parent / "unlabeled.csv").write_text("sentence1,sentence2,condition\na,b,c\n")
    assert message in fault(*options(data, **more))
    assert backend.asked == []
