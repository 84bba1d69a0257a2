from __future__ import annotations

import numpy as np
import pytest

from condsim.data.load import load_task
from condsim.data.stsb import load_stsb_glue
from condsim.errors import InputError

HEADER = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
ROW = '0\tmain-captions\tMSRvid\t2012test\t1\tnone\tnone\tA "dog.\tA cat.\t2.500\n'


def test_load_task_glue_told_by_its_columns(write):
    task = load_task(write("x.tsv", HEADER + ROW), require_labels=True)
    assert (task.name, task.conditions, task.label_range) == ("x", None, (0.0, 5.0))
    assert (task.sentences1, task.sentences2) == (('A "dog.',), ("A cat.",))
    np.testing.assert_allclose(task.gold, [0.5])


def test_load_stsb_glue_test_file_has_no_labels(write):
    text = (HEADER + ROW).replace("\tscore", "").replace("\t2.500", "")
    path = write("test.tsv", text)
    task = load_task(path)
    assert (len(task), task.valid.any()) == (1, False)
    with pytest.raises(InputError, match=r"labels are needed here, and none of the 1 rows has one"):
        load_task(path, require_labels=True)


def test_load_stsb_glue_count_other_than_published_warned(write, caplog):
    load_stsb_glue(write("dev.tsv", HEADER + ROW))
    assert "dev.tsv: has 1 rows, and 1500 are published" in caplog.text


def test_load_stsb_glue_bad_score_names_place(write):
    with pytest.raises(InputError, match=r"row 1 \(line 2\), column 'score': must be .* 0 to 5"):
        load_task(write("x.tsv", HEADER + ROW.replace("2.500", "-1")))
