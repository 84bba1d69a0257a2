from __future__ import annotations

import hashlib
import logging

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.csts import iter_csts, load_csts
from condsim.errors import InputError


def test_load_csts_rows_and_labels_read(write_csts):
    path = write_csts('A cat.,A dog.,the animal,1\n"A cat, red",A dog.,the legs,5.0\nx,y,z,-1\n')
    task = load_csts(path)
    assert task.name == "pairs"
    assert task.sentences1 == ("A cat.", "A cat, red", "x")
    assert task.sentences2 == ("A dog.", "A dog.", "y")
    assert task.conditions == ("the animal", "the legs", "z")
    assert task.labels.dtype == np.float32
    assert task.label_range == (1.0, 5.0)
    np.testing.assert_array_equal(task.labels, [1, 5, np.nan])
    np.testing.assert_array_equal(task.gold, [0, 1, np.nan])


def test_load_csts_revision_is_hash_of_file_and_name_is_used(write_csts):
    path = write_csts("A,B,C,1\n")
    task = load_csts(path, name="mine")
    revision = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert (task.revision, task.name) == (revision, "mine")


@pytest.mark.parametrize(
    ("label", "value"),
    [
        *((text, np.nan) for text in ["", " ", "-1", "-1.0", "nan", "NaN"]),
        *[("3", 3), ("3.0", 3), (" 2.5 ", 2.5), ("1", 1)],
    ],
)
def test_load_csts_label_spellings_read(write_csts, label, value):
    np.testing.assert_array_equal(load_csts(write_csts(f"A,B,C,{label}\n")).labels, [value])


def test_load_csts_no_label_column_is_unlabelled(write):
    task = load_csts(write("x.csv", "sentence1,sentence2,condition\nA,B,C\n"))
    assert np.isnan(task.labels).all()


def test_load_csts_json_and_parquet_same_as_csv(write, tmp_path):
    columns = {"sentence1": ["A", "B"], "sentence2": ["C", "D"], "condition": ["e", "f"]}
    pq.write_table(pa.table(columns | {"label": [3.0, None]}), tmp_path / "x.parquet")
    lines = (
        '{"sentence1": "A", "sentence2": "C", "condition": "e", "label": 3}\n'
        '{"sentence1": "B", "sentence2": "D", "condition": "f", "label": NaN}\n'
    )
    header = "\t".join([*columns, "label"])
    expected = list(iter_csts(write("x.tsv", f"{header}\nA\tC\te\t3\nB\tD\tf\t-1\n")))
    assert list(iter_csts(write("x.jsonl", lines))) == expected
    assert list(iter_csts(tmp_path / "x.parquet")) == expected


def test_load_csts_unlabelled_count_logged_and_labels_required(write_csts, caplog):
    with caplog.at_level(logging.INFO, logger="condsim"):
        task = load_csts(write_csts("A,B,C,1\nA,B,D,-1\n"), require_labels=True)
    assert (len(task), "2 rows, 1 labeled, 1 unlabeled" in caplog.text) == (2, True)
    with pytest.raises(InputError, match=r"none of 1 has one"):
        load_csts(write_csts("A,B,C,-1\n"), require_labels=True)


@pytest.mark.parametrize("column", ["sentence1", "sentence2", "condition"])
def test_load_csts_empty_text_names_place(write_csts, column):
    cells = {"sentence1": "A", "sentence2": "B", "condition": "C"} | {column: "  "}
    path = write_csts("A,B,C,1\n" + ",".join(cells.values()) + ",2\n")
    rule = rf"pairs\.csv, row 2 \(line 3\), column '{column}': must not be empty"
    with pytest.raises(InputError, match=rule):
        load_csts(path)


def test_load_csts_condition_of_punctuation_names_place(write_csts):
    assert load_csts(write_csts("?,!,the place?,1\n")).conditions == ("the place?",)
    rule = r"row 2 \(line 3\), column 'condition': must have a letter, .*, got '\?\?\?'"
    with pytest.raises(InputError, match=rule):
        load_csts(write_csts("A,B,C,1\nA,B,???,2\n"))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("null", r"row 1 \(line 1\), column 'condition': must not be empty"),
        ("3", "column 'condition': must be text, got 3"),
    ],
)
def test_load_csts_json_text_null_or_number_refused(write, condition, message):
    line = f'{{"sentence1": "A", "sentence2": "B", "condition": {condition}}}\n'
    with pytest.raises(InputError, match=message):
        load_csts(write("x.jsonl", line))


@pytest.mark.parametrize("label", ["0", "5.01", "6", "-2", "0.75", "inf", "-inf", "high", "3,0"])
def test_load_csts_label_bad_names_place(write_csts, label):
    rule = r"row 2 \(line 3\), column 'label': must be a number from 1 to 5, or -1 .*, got "
    with pytest.raises(InputError, match=rule + repr(label)):
        load_csts(write_csts(f'A,B,C,1\nA,B,D,"{label}"\n'))


def test_load_csts_label_of_adapt_told_the_number(write_csts):
    with pytest.raises(InputError, match=r"and threshold read words: write 5 for alike"):
        load_csts(write_csts("A,B,C,different\n"))


@pytest.mark.parametrize("label", ["1" + "0" * 400, "true"])
def test_load_csts_json_label_huge_or_boolean_refused(write, label):
    line = f'{{"sentence1": "A", "sentence2": "B", "condition": "C", "label": {label}}}'
    with pytest.raises(InputError, match="column 'label': must be a number"):
        load_csts(write("x.jsonl", line))


def test_iter_csts_label_bad_ignored_without_labels(write_csts):
    assert list(iter_csts(write_csts("A,B,C,high\n"), labels=False)) == [("A", "B", "C", None)]


def test_iter_csts_rows_before_fault_yielded(write_csts):
    rows = iter_csts(write_csts("A,B,C,1\nA,B,,2\n"))
    assert next(rows) == ("A", "B", "C", 1.0)
    with pytest.raises(InputError, match="row 2"):
        next(rows)


def test_load_csts_released_counts(released):
    task = load_csts(released / "train.csv")
    labels, counts = np.unique(task.labels, return_counts=True)
    assert (len(task), task.revision, labels.tolist()) == (11342, "118ef9354435", [1, 2, 3, 4, 5])
    assert counts.tolist() == [1115, 1902, 3790, 2416, 2119]
    dev = load_csts(released / "dev.csv")
    assert (len(dev), int((~dev.valid).sum())) == (1982, 168)


def test_load_csts_original_file_of_another_length_warned(write, caplog):
    load_csts(write("csts_validation.csv", "sentence1,sentence2,condition,label\nA,B,C,1\n"))
    assert "csts_validation.csv: has 1 rows, and 2834 are published" in caplog.text
