from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from tests import commands

from condsim.cli import predict as module
from condsim.errors import ModelError

invoke, fault = partial(commands.invoke, "predict"), partial(commands.fault, "predict")
pytestmark = pytest.mark.usefixtures("numbers")


def write(path, numbers, *, after=""):
    lines = [f"A lamp.,A bulb.,aspect {number}\n" for number in numbers]
    path.write_text("sentence1,sentence2,condition\n" + "".join(lines) + after, encoding="utf-8")
    return path


def test_predict_blocks_keep_order_and_every_digit(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 4)
    scores = np.random.default_rng(0).random(11, dtype=np.float32)
    data, output = write(tmp_path / "test.csv", scores), tmp_path / "out.json"
    assert invoke(data, "--output", output).exit_code == 0
    assert numbers.blocks == [4, 4, 3]
    content = json.loads(output.read_text())
    assert list(content) == [str(row) for row in range(11)]
    np.testing.assert_array_equal(np.float32(list(content.values())), scores)


def test_predict_score_that_is_no_number_is_an_error(tmp_path):
    data, output = write(tmp_path / "test.csv", [1, "nan"]), tmp_path / "out.json"
    assert "for rows 1 to 2" in fault(data, "--output", output, kind=ModelError)
    assert not output.exists()


def test_predict_written_pairs_one_entry_for_each_condition(tmp_path):
    data = tmp_path / "pairs.txt"
    data.write_text("lamps ||| A lamp. ||| A bulb. ||| aspect 0.5 = 1 ; aspect 0.25 = 5\n")
    assert invoke(data, "--output", tmp_path / "out.json").exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"0": 0.5, "1": 0.25}


def test_predict_rows_without_text_are_null_and_counted(tmp_path):
    output, after = tmp_path / "out.json", "A lamp.,,aspect 5\n,,\nA lamp.,A bulb.,aspect 0.25\n"
    result = invoke(write(tmp_path / "test.csv", [0.5, 0], after=after), "--output", output)
    assert json.loads(output.read_text()) == {"0": 0.5, "1": 0.0, "2": None, "3": None, "4": 0.25}
    assert "2 rows have no text and thus the score null (row 3, 4)" in result.stderr
    assert "3 scores by number" in result.stderr
