from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from papers.data.sick import load_sick

from condsim.data.load import load_task
from condsim.errors import InputError

HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
ROW = "1\tA dog runs.\tA cat runs.\t3.4\tNEUTRAL\n"


def test_load_task_sick_told_by_its_columns(write):
    for name in ("SICK_train.txt", "x.tsv"):
        task = load_task(write(name, HEADER + ROW))
        assert (task.conditions, task.label_range) == (None, (1.0, 5.0))
        assert (task.sentences1, task.sentences2) == (("A dog runs.",), ("A cat runs.",))
        np.testing.assert_allclose(task.gold, [0.6])


def test_load_sick_split_of_the_whole_file_taken(write, caplog):
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set\n"
    rows = "1\tA\tB\tNEUTRAL\t1\tTRAIN\n2\tC\tD\tNEUTRAL\t5\tTEST\n3\tE\tF\tNEUTRAL\t4\tTRAIN\n"
    path = write("SICK.txt", header + rows)
    assert load_sick(path, split="train").sentences1 == ("A", "E")
    assert "SICK.txt, train: has 2 rows, and 4500 are published" in caplog.text
    assert len(load_sick(path)) == 3
    assert "has 3 rows, and 9927" in caplog.text
    with pytest.raises(InputError, match="has no row 'TRIAL'"):
        load_sick(path, split="trial")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1\tA\tB\t0.5\tNEUTRAL\n", r"column 'relatedness_score': must be a number from 1 to 5"),
        ("1\tA\tB\t3\n", "must have 5 fields"),
    ],
)
def test_load_sick_bad_row_is_one_line(write, row, message):
    with pytest.raises(InputError, match=message):
        load_sick(write("x.tsv", HEADER + row))


def test_load_task_released_sick_has_published_counts(caplog):
    folder = Path(__file__).resolve().parents[3] / "../shared/data/sick-r"
    if not folder.is_dir():
        pytest.skip("the SICK files are not here")
    rows = [len(load_task(folder / f"sick_{split}.tsv")) for split in ("train", "trial", "test")]
    assert rows == [4500, 500, 4927]
    assert not caplog.records
