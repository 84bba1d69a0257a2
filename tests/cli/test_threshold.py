from __future__ import annotations

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from condsim.cli import threshold as module
from condsim.cli.process import guard
from condsim.cli.threshold import threshold
from condsim.errors import InputError

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(threshold)
guard(APP)


class NumberScorer:
    """Scores by the second sentence."""

    def score(self, sentences1, sentences2, conditions):
        return np.asarray(sentences2, np.float32)


@pytest.fixture(autouse=True)
def _numbers(monkeypatch):
    monkeypatch.setattr(module, "load_scorer", lambda model: NumberScorer())


def invoke(path, labels, *options):
    rows = [f"A lamp.,{row / 1000},the use,{label}" for row, label in enumerate(labels)]
    path.write_text("\n".join(["sentence1,sentence2,condition,label", *rows, ""]))
    return CliRunner().invoke(APP, [str(path), *options])


def test_threshold_is_printed_alone_with_its_figures_on_stderr(tmp_path):
    result = invoke(tmp_path / "in.csv", [-1] * 50 + [3] * 200 + [4] * 300, "--precision", "0.9")
    assert result.exit_code == 0, result.exception
    value = float(result.stdout)
    assert 0.2 < value < 0.25
    reached = 550 - round(value * 1000)
    assert f"recall 1.000: {reached} of 500 rows reach it, and 300" in result.stderr


def test_threshold_positive_says_what_is_alike(tmp_path):
    result = invoke(tmp_path / "in.csv", [0] * 100 + [1] * 200, "--positive", "1")
    assert 0.09 < float(result.stdout) <= 0.1


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ([0] * 100 + [1] * 200, ()),
        (["different"] * 100 + ["alike"] * 200, ()),
        (["No"] * 100 + ["yes"] * 200, ()),
        (["neu"] * 100 + ["gleich"] * 200, ("--positive", "gleich")),
    ],
)
def test_threshold_labels_are_numbers_or_two_words(tmp_path, labels, options):
    result = invoke(tmp_path / "in.csv", labels, *options)
    assert 0.09 < float(result.stdout) <= 0.1, result.exception


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([5] * 10, (), "takes at least 103 positive ones"),
        ([1, 2] * 10, (), "no row is labeled alike. Give --positive"),
        (["alike", "new"] * 10, (), "a number, or a word such as 'alike' and 'different'"),
        ([7] * 10, (), "labels must be numbers from 0 to 5"),
        ([5, -0.5], (), "labels must be numbers from 0 to 5"),
        ([5, "alike"], (), "labels must be numbers from 1 to 5"),
        ([1, 3], ("--scale", "0-1"), "labels must be numbers from 0 to 1"),
        ([5] * 10, ("--precision", "95"), "above 0 and below 1"),
    ],
)
def test_threshold_bad_input_is_one_line(tmp_path, labels, options, message):
    error = invoke(tmp_path / "in.csv", labels, *options).exception
    assert isinstance(error, InputError)
    assert message in str(error)


def test_threshold_separator_and_columns_are_options(tmp_path):
    rows = [f"A lamp.#{row / 300}#{'yes' if row > 20 else 'no'}" for row in range(300)]
    (tmp_path / "in.csv").write_text("\n".join(["left#right#same", *rows, ""]), "utf-16-le")
    options = "--text1 left --text2 right --label same --condition use --separator #".split()
    words = [str(tmp_path / "in.csv"), *options, "--encoding", "utf-16-le"]
    result = CliRunner().invoke(APP, words)
    assert 0 < float(result.stdout) < 1, result.exception


def test_threshold_scale_and_rows_without_text_are_told(tmp_path):
    labels = [1] * 100 + [5] * 200
    text = invoke(tmp_path / "in.csv", labels) and (tmp_path / "in.csv").read_text()
    (tmp_path / "in.csv").write_text(text + ",0.5,the use,5\n")
    result = CliRunner().invoke(APP, [str(tmp_path / "in.csv"), "--scale", "0-5"])
    assert 0.09 < float(result.stdout) <= 0.1
    assert "1 row has no text and thus no score (row 301)" in result.stderr
