from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.load import load_task
from condsim.errors import InputError

STSB = "main-news\tMSRpar\t2012train\t0001\t%s\tA dog runs.\tA cat runs.\n"
HEADER = "sentence1,sentence2,condition,label\n"


@pytest.mark.parametrize("start", ["", "\ufeff", "\n\r\n"])
def test_load_task_stsb_told_by_its_first_line(write, start):
    # U+2028 ends no line
    task = load_task(write("x.csv", start + STSB % "2.5" + "a\u2028b" + STSB % "5"), name="mine")
    assert (task.name, len(task), task.conditions) == ("mine", 2, None)


def test_load_task_stsb_suffix_plays_no_part(write):
    assert load_task(write("x.txt", STSB % "2.5")).label_range == (0.0, 5.0)


def test_load_task_csts_in_any_format(write, tmp_path):
    assert load_task(write("x.csv", HEADER + "A,B,C,4\n")).conditions == ("C",)
    columns = {"sentence1": ["A"], "sentence2": ["B"], "condition": ["C"], "label": [4.0]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert load_task(tmp_path / "x.parquet").conditions == ("C",)
    wide = [*HEADER.strip().split(","), "e", "f", "g"]
    task = load_task(write("x.tsv", "\t".join(wide) + "\nA\tB\tC\t4\t1\t2\t3\n"))
    assert task.label_range == (1.0, 5.0)


def test_load_task_stsb_bad_later_line_told_as_stsb(write):
    with pytest.raises(InputError, match=r"\(line 2\), column 'score'"):
        load_task(write("x.csv", STSB % "2.5" + STSB % "six"))


def test_load_task_labels_required_of_csts(write):
    with pytest.raises(InputError, match="none of 1 has one"):
        load_task(write("x.csv", HEADER + "A,B,C,-1\n"), require_labels=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "", "is empty"),
        ("x.csv", "sentence1,sentence2\nA,B\n", "column 'condition' is missing"),
        ("x.txt", HEADER, "the suffix decides the format"),
    ],
)
def test_load_task_neither_kind_told_as_csts(write, name, content, message):
    with pytest.raises(InputError, match=message):
        load_task(write(name, content))


def test_load_task_no_file_or_folder_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_task(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        load_task(tmp_path)


def test_load_task_pipe_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(InputError, match="is not a regular file, and is read twice"):
        load_task(tmp_path / "p.csv")


def test_load_task_dash_is_for_commands():
    with pytest.raises(InputError, match="A command reads standard input"):
        load_task("-")
