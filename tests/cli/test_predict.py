from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from condsim.cli import predict as module
from condsim.cli.predict import predict
from condsim.cli.process import guard
from condsim.errors import InputError, ModelError

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(predict)
guard(APP)


class NumberScorer:
    """Scores by the number at the end of the condition, in thousandths."""

    name = "number"

    def __init__(self):
        self.blocks = []

    def score(self, sentences1, sentences2, conditions):
        assert len(sentences1) == len(sentences2) == len(conditions)
        self.blocks.append(len(conditions))
        return np.asarray([float(text.split()[-1]) / 1000 for text in conditions], np.float32)


@pytest.fixture(autouse=True)
def scorer(monkeypatch):
    made = NumberScorer()
    monkeypatch.setattr(module, "load_scorer", lambda model: made)
    return made


def write(path, numbers, *, labels=False):
    lines = ["sentence1,sentence2,condition" + (",label" if labels else "")]
    for number in numbers:
        lines.append(f"A lamp.,A bulb.,aspect {number}" + (",-1" if labels else ""))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def test_predict_writes_one_entry_for_every_row_in_order(tmp_path):
    output = tmp_path / "out.json"
    data = write(tmp_path / "test.csv", [500, 0, 1000, 250], labels=True)
    result = invoke(data, "--output", output)
    assert result.exit_code == 0
    content = json.loads(output.read_text())
    assert list(content.items()) == [("0", 0.5), ("1", 0.0), ("2", 1.0), ("3", 0.25)]
    assert result.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "test.csv"]


def test_predict_likert_scale_is_1_to_5(tmp_path):
    output = tmp_path / "out.json"
    data = write(tmp_path / "test.csv", [500, 0, 1000])
    assert invoke(data, "--output", output, "--scale", "likert").exit_code == 0
    assert json.loads(output.read_text()) == {"0": 3.0, "1": 1.0, "2": 5.0}


def test_predict_blocks_keep_order_and_bound_the_rows_held(tmp_path, scorer, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 4)
    output = tmp_path / "out.json"
    numbers = np.random.default_rng(0).integers(0, 1000, size=11).tolist()
    data = write(tmp_path / "test.csv", numbers)
    assert invoke(data, "--output", output).exit_code == 0
    assert scorer.blocks == [4, 4, 3]
    content = json.loads(output.read_text())
    assert list(content) == [str(row) for row in range(11)]
    # written so that float32 reads back the same
    assert [np.float32(value) for value in content.values()] == [
        np.float32(number / 1000) for number in numbers
    ]


def test_predict_bad_row_leaves_an_earlier_output_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 2)
    output = tmp_path / "out.json"
    output.write_text("earlier")
    data = write(tmp_path / "test.csv", [1, 2, 3, 4])
    data.write_text(data.read_text() + "A lamp.,,aspect 5\n")
    result = invoke(data, "--output", output, "--strict")
    assert isinstance(result.exception, InputError)
    assert "sentence2" in str(result.exception)
    assert output.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "test.csv"]


def test_predict_score_that_is_no_number_is_an_error(tmp_path):
    data = write(tmp_path / "test.csv", [1, "nan"])
    result = invoke(data, "--output", tmp_path / "out.json")
    assert isinstance(result.exception, ModelError)
    assert "for rows 1 to 2" in str(result.exception)
    assert not (tmp_path / "out.json").exists()


def test_predict_output_in_a_missing_folder_is_an_error(tmp_path, scorer):
    data = write(tmp_path / "test.csv", [1])
    result = invoke(data, "--output", tmp_path / "none" / "out.json")
    assert isinstance(result.exception, InputError)
    assert scorer.blocks == []


def test_predict_unknown_scale_is_an_error(tmp_path):
    data = write(tmp_path / "test.csv", [1])
    result = invoke(data, "--output", tmp_path / "out.json", "--scale", "percent")
    assert result.exit_code == 2


def test_predict_help_has_examples():
    result = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    assert "condsim predict csts_test.csv" in result.output


def test_predict_written_pairs_one_entry_for_each_condition(tmp_path):
    data = tmp_path / "pairs.txt"
    data.write_text("lamps ||| A lamp. ||| A bulb. ||| aspect 500 = 1 ; aspect 250 = 5\n")
    result = invoke(data, "--output", tmp_path / "out.json")
    assert result.exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"0": 0.5, "1": 0.25}


def test_predict_rows_without_text_are_null_and_counted(tmp_path):
    output = tmp_path / "out.json"
    data = write(tmp_path / "test.csv", [500, 0])
    data.write_text(data.read_text() + "A lamp.,,aspect 5\n,,\nA lamp.,A bulb.,aspect 250\n")
    result = invoke(data, "--output", output)
    assert result.exit_code == 0
    content = json.loads(output.read_text())
    assert content == {"0": 0.5, "1": 0.0, "2": None, "3": None, "4": 0.25}
    assert "2 rows have no text and thus the score null (row 3, 4)" in result.stderr
    assert "3 scores by number" in result.stderr
