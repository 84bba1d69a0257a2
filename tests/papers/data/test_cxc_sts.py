from __future__ import annotations

from pathlib import Path

import pytest
from papers.data.sts import load_cxc_sts

from condsim.data.load import load_task
from condsim.errors import InputError

HEADER = "score\tsentence1\tsentence2\tcaption_id1\tcaption_id2\tsampling\n"


def test_load_task_cxc_sts_told_by_its_columns(write):
    task = load_task(write("x.tsv", HEADER + "0.5\tA\tB\t1\t2\tc2c_isim\n"))
    assert (task.conditions, task.label_range, task.labels.tolist()) == (None, (0.0, 5.0), [0.5])
    with pytest.raises(InputError, match="column 'score': must be a number from 0 to 5"):
        load_cxc_sts(write("x.tsv", HEADER + "5.5\tA\tB\t1\t2\tc2c_isim\n"))


def test_load_cxc_sts_part_of_it_warned_with_both_numbers(caplog):
    path = Path(__file__).resolve().parents[3] / "../shared/data/cxc-sts/cxc_sts_val.tsv"
    if not path.is_file():
        pytest.skip("the Crisscrossed Captions file is not here")
    assert len(load_task(path)) == 3309
    assert "has 3309 rows, and 44009 are published" in caplog.text
