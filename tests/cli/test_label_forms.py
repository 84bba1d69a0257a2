"""Labels and rows without text, in the three commands that read labeled pairs."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from tests.commands import fault, invoke

pytest.importorskip("sentence_transformers")
COMMANDS = ("adapt", "evaluate", "threshold")


class RowsReadError(Exception):
    """Ends a command that has read its rows; the argument is their labels from 1 to 5."""


@pytest.fixture(autouse=True)
def _stop_after_reading(monkeypatch, numbers):
    from condsim.training import adaptation
    from condsim.training.adapt_rows import read_labeled

    def stop_adapt(labeled, *_, **__):
        raise RowsReadError([pair.label for pair in read_labeled(labeled)])

    def stop_evaluate(task, **_):
        raise RowsReadError((1 + 4 * task.gold[task.valid]).tolist())

    def stop_threshold(scores, alike, **_):
        raise RowsReadError(np.where(alike, 5, 1).tolist())

    evaluation = import_module("condsim.evaluation.evaluate")
    monkeypatch.setattr(adaptation, "adapt", stop_adapt)
    monkeypatch.setattr(evaluation, "labeled_rows", stop_evaluate)
    monkeypatch.setattr("condsim.cli.threshold.find_threshold", stop_threshold)


def words_of(command, path, rows):
    lines = [("sentence1", "sentence2", "condition", "label"), *rows]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    output = ("--output", path.with_suffix("")) if command == "adapt" else ()
    return command, path, *output


def labeled(different, alike):
    return [(f"Lamp {n}.", "A bulb.", "use 1", (different, alike)[n % 2]) for n in range(24)]


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
        (1, 7, ("--scale", "1..7")),
        (0, 100, ()),
        (-1, 1, ("--scale", "-1-1")),
        ('"1,0"', "5", ()),
        ("neu", "gleich", ("--positive", "gleich")),
    ],
)
def test_labels_of_every_form_read_alike(tmp_path, command, different, alike, options):
    words = words_of(command, tmp_path / "in.csv", labeled(different, alike))
    result = invoke(*words, *options)
    assert isinstance(result.exception, RowsReadError), result.exception
    assert result.exception.args[0] == [1, 5] * 12


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_without_text_left_out_and_strict_stops(tmp_path, command):
    file, rows = tmp_path / "in.csv", labeled(1, 5)
    for row in ("A lamp.", "", "use 1", -1), ("", "A bulb.", "use 1", 5):
        words = words_of(command, file, [rows[0], row, *rows[1:]])
        result = invoke(*words)
        assert result.exception.args[0] == [1, 5] * 12
        # The command threshold counts them at its end: tests/cli/test_threshold.py.
        assert command == "threshold" or "1 row has no text and thus no" in result.stderr
    message = fault(*words, "--strict")
    assert "row 2 (line 3), column 'sentence1': must not be empty" in message
