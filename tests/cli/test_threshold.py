from __future__ import annotations

from functools import partial

import pytest
from tests import commands

invoke, fault = partial(commands.invoke, "threshold"), partial(commands.fault, "threshold")
pytestmark = pytest.mark.usefixtures("numbers")


@pytest.fixture
def write(tmp_path):
    """Writes a row for each label; the scores are 0, 0.001, 0.002 and so on."""

    def write_labels(labels, after=""):
        rows = [f"A lamp.,A bulb.,at {row / 1000},{label}\n" for row, label in enumerate(labels)]
        path = tmp_path / "in.csv"
        path.write_text("sentence1,sentence2,condition,label\n" + "".join(rows) + after)
        return path

    return write_labels


def test_threshold_is_printed_alone_with_its_figures_on_stderr(write):
    result = invoke(write([-1] * 50 + [3] * 200 + [4] * 300), "--precision", "0.9")
    assert result.exit_code == 0, result.exception
    value = float(result.stdout)
    assert 0.2 < value < 0.25
    reached = 550 - round(value * 1000)
    assert f"recall 1.000: {reached} of 500 rows reach it, and 300" in result.stderr


def test_threshold_shows_a_table_also_where_it_refuses(write):
    result = invoke(write([3] * 200 + [4] * 60), "--precision", "0.95")
    assert result.exit_code != 0
    assert "threshold  rows  precision  95 % interval  recall  F1" in result.stderr
    assert "best F1" in result.stderr


def test_threshold_says_the_share_and_that_no_condition_was_given(write, tmp_path):
    assert "scores with --overall 0" in invoke(write([1] * 100 + [5] * 200)).stderr
    path = tmp_path / "plain.csv"
    rows = [("A dog runs.", "A dog runs.", 1), ("A dog runs.", "It rains.", 0)] * 110
    lines = [f"{first},{second},{label}\n" for first, second, label in rows]
    path.write_text("sentence1,sentence2,label\n" + "".join(lines))
    result = invoke(path)
    assert "No condition: the threshold is for texts as a whole" in result.stderr


def test_threshold_positive_scale_and_rows_without_text(write):
    result = invoke(write([0] * 100 + [1] * 200), "--positive", "1")
    assert 0.09 < float(result.stdout) <= 0.1
    result = invoke(write([1] * 100 + [5] * 200, ",A bulb.,the use,5\n"), "--scale", "0-5")
    assert 0.09 < float(result.stdout) <= 0.1
    assert "1 row has no text and thus no score (row 301)" in result.stderr


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([1, *[5] * 9], (), "takes at least 103 positive ones"),
        ([5] * 10, (), "every row is labeled alike, and rows of both kinds are needed"),
        ([1, -1] * 10, (), "no row is labeled alike, and rows of both kinds are needed"),
        (["alike", "new"] * 10, (), "a number, or a word such as 'alike' or 'different'"),
        ([5, -0.5], (), "must be a number from 1 to 5, or -1 for no label, got '-0.5'"),
        ([5, "alike"], (), "must be a number from 1 to 5"),
        ([1, 3], ("--scale", "0-1"), "must be a number from 0 to 1"),
        ([1, 3], ("--scale", "5-1"), "--scale: must be LOWEST-HIGHEST, such as 1-5"),
        ([5] * 10, ("--precision", "95"), "above 0 and below 1"),
    ],
)
def test_threshold_bad_input_refused(write, labels, options, message):
    assert message in fault(write(labels), *options)


def test_threshold_separator_and_columns_are_options(tmp_path):
    rows = [f"A lamp.#at {row / 300}#{'yes' if row > 20 else 'no'}" for row in range(300)]
    (tmp_path / "in.csv").write_text("\n".join(["left#about#same", *rows, ""]), "utf-16-le")
    options = "--text1 left --text2 left --label same --condition-column about --separator #"
    result = invoke(tmp_path / "in.csv", *options.split(), "--encoding", "utf-16-le")
    assert 0 < float(result.stdout) < 1, result.exception
