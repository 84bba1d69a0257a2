"""Labels and rows without text, in the three commands that read labelled pairs."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.adapt import adapt
from condsim.cli.evaluate import evaluate
from condsim.cli.process import guard
from condsim.cli.threshold import threshold
from condsim.errors import InputError

pytest.importorskip("sentence_transformers")
APP = typer.Typer(rich_markup_mode="markdown")
for command in (adapt, evaluate, threshold):
    APP.command()(command)
guard(APP)
COMMANDS = ("adapt", "evaluate", "threshold")
NO_LABEL = ("A lamp.", "", "the use", "-1")


class RowsReadError(Exception):
    """Ends a command that has read its rows; the argument is their labels from 1 to 5."""


class ConstantScorer:
    def score(self, sentences1, sentences2, conditions):
        return np.zeros(len(sentences1), np.float32)


@pytest.fixture(autouse=True)
def _stop_after_reading(monkeypatch):
    from condsim.training import adaptation
    from condsim.training.adapt_rows import read_labelled

    def stop_adapt(labelled, *_, **__):
        raise RowsReadError([pair.label for pair in read_labelled(labelled)])

    def stop_evaluate(task, **_):
        raise RowsReadError(task.labels[task.valid].tolist())

    def stop_threshold(scores, alike, **_):
        raise RowsReadError(np.where(alike, 5, 1).tolist())

    module = import_module("condsim.cli.threshold")
    monkeypatch.setattr(adaptation, "adapt", stop_adapt)
    monkeypatch.setattr(
        import_module("condsim.evaluation.evaluate"), "labelled_rows", stop_evaluate
    )
    monkeypatch.setattr(module, "load_scorer", lambda _: ConstantScorer())
    monkeypatch.setattr(module, "find_threshold", stop_threshold)


def run(command, path, rows, *options):
    lines = [("sentence1", "sentence2", "condition", "label"), *rows]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    output = ("--output", str(path.with_suffix(""))) if command == "adapt" else ()
    return CliRunner().invoke(APP, [command, str(path), *output, *options])


def labelled(different, alike):
    return [(f"Lamp {n}.", "A bulb.", "the use", (different, alike)[n % 2]) for n in range(24)]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("different", "alike", "options"),
    [
        ("different", "alike", ()),
        ("No", "yes", ()),
        (0, 1, ()),
        (1, 5, ()),
        (0, 5, ()),
        (1, 5, ("--scale", "1-5")),
        ("neu", "gleich", ("--positive", "gleich")),
    ],
)
def test_labels_of_every_form_read_alike(tmp_path, command, different, alike, options):
    result = run(command, tmp_path / "in.csv", labelled(different, alike), *options)
    assert isinstance(result.exception, RowsReadError), result.exception
    assert result.exception.args[0] == [1, 5] * 12


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_without_text_left_out_and_strict_stops(tmp_path, command):
    rows = labelled(1, 5)
    rows[1:1] = [("", "A bulb.", "the use", 5)]
    result = run(command, tmp_path / "in.csv", rows)
    assert result.exception.args[0] == [1, 5] * 12
    error = run(command, tmp_path / "in.csv", rows, "--strict").exception
    assert isinstance(error, InputError)
    assert "row 2 (line 3), column 'sentence1': must not be empty" in str(error)
    result = run(command, tmp_path / "in.csv", [NO_LABEL, *labelled(1, 5)])
    assert result.exception.args[0] == [1, 5] * 12


@pytest.mark.parametrize(("command", "consequence"), [("adapt", "part in"), ("evaluate", "score")])
def test_rows_without_text_counted(tmp_path, command, consequence):
    result = run(command, tmp_path / "in.csv", [NO_LABEL, *labelled(1, 5)])
    assert f"1 row has no text and thus no {consequence}" in result.stderr
