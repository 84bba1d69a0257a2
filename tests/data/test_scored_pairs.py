from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.files import BlankRows
from condsim.data.load import load_task
from condsim.data.pairs import load_pairs
from condsim.data.statistics import describe
from condsim.errors import InputError

HEADER = "sentence1,sentence2,score\n"


def test_load_pairs_rows_read_without_conditions(write):
    task = load_pairs(write("harvest.csv", HEADER + "A dog runs.,A cat runs.,0.25\nA,B,1\n"))
    assert (task.name, len(task), task.conditions) == ("harvest", 2, None)
    assert (task.sentences1, task.sentences2) == (("A dog runs.", "A"), ("A cat runs.", "B"))
    assert task.labels.dtype == np.float32
    assert task.gold.tolist() == [0.25, 1.0]
    assert task.valid.all()


def test_load_pairs_repeated_sentence_is_held_once(write):
    text = HEADER + "A dog runs.,A cat runs.,0\nA cat runs.,A dog runs.,1\n"
    task = load_pairs(write("x.csv", text))
    assert task.sentences1[0] is task.sentences2[1]


def test_load_task_scored_pairs_told_by_their_columns(write, tmp_path):
    rows = '{"sentence1": "A", "sentence2": "B", "score": 0.5, "kind": "random"}\n'
    columns = {"sentence1": ["A"], "sentence2": ["B"], "score": pa.array([0.5], pa.float32())}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    for path in (
        write("x.csv", HEADER + "A,B,0.5\n"),
        write("x.tsv.gz", gzip.compress(b"\xef\xbb\xbfscore\tsentence1\tsentence2\n0.5\tA\tB\n")),
        write("x.jsonl", "\n" + rows),
        tmp_path / "x.parquet",
    ):
        task = load_task(path)
        assert (task.name, task.conditions, task.label_range) == ("x", None, (0.0, 1.0))
        assert task.labels.tolist() == [0.5]
        assert describe(task).rows == 1


def test_load_task_score_beside_condition_or_label_is_csts(write):
    text = "sentence1,sentence2,condition,label,score\nA,B,C,4,9\n"
    assert load_task(write("x.csv", text)).conditions == ("C",)
    with pytest.raises(InputError, match="column 'condition' is missing"):
        load_task(write("y.csv", "sentence1,sentence2,label,score\nA,B,4,1\n"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("A,B,1.01", r"row 1 \(line 2\), column 'score': must be a number from 0 to 1, got '1.01'"),
        ("A,B,-0.1", "from 0 to 1, got '-0.1'"),
        ("A,B,nan", "from 0 to 1, got 'nan'"),
        ("A,B,high", "from 0 to 1, got 'high'"),
        ("A,B,", "from 0 to 1, got ''"),
        (",B,1", "column 'sentence1': must not be empty"),
        ("A, ,1", "column 'sentence2': must not be empty"),
    ],
)
def test_load_pairs_bad_row_names_its_place(write, row, message):
    with pytest.raises(InputError, match=message):
        load_pairs(write("x.csv", f"{HEADER}{row}\n"))


def test_load_pairs_missing_column_is_named(write):
    with pytest.raises(InputError, match="column 'sentence2' is missing"):
        load_task(write("x.csv", "sentence1,score\nA,1\n"))


def test_load_pairs_score_above_one_means_ratings_to_five(write):
    task = load_task(write("x.csv", HEADER + "A,B,0.5\nA,C,1.02\n"))
    assert (task.label_range, task.labels.tolist()) == ((0.0, 5.0), pytest.approx([0.5, 1.02]))
    with pytest.raises(InputError, match="from 0 to 5, got '7'"):
        load_task(write("x.csv", HEADER + "A,B,2\nA,B,7\n"))


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", gzip.compress(b"a" * 9000, mtime=0)[:-20]])
def test_load_pairs_damaged_gzip_is_one_line(write, content):
    with pytest.raises(InputError, match=r"is empty|cannot be read|has no rows"):
        load_pairs(write("x.csv.gz", content))


def test_load_task_scored_pairs_without_text_left_out_and_counted(write):
    path = write("x.csv", HEADER + "A,B,0.5\n,C,1\nD,E,0.25\n")
    blank = BlankRows()
    assert load_task(path, blank=blank).gold.tolist() == [0.5, 0.25]
    assert blank.count == 1
    for strict in (None, BlankRows(strict=True)):
        with pytest.raises(InputError, match=r"row 2 .*'sentence1': must not be empty"):
            load_task(path, blank=strict)
