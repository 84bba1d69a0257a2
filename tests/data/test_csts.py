from __future__ import annotations

import hashlib
import logging

import numpy as np
import pytest

from condsim.data.csts import iter_csts, load_applicability, load_csts
from condsim.errors import InputError


def test_load_csts_rows_and_labels_read(write_csts):
    path = write_csts('A cat.,A dog.,the animal,1\n"A cat, red",A dog.,the legs,5.0\nx,y,z,-1\n')
    task = load_csts(path)
    assert (task.name, load_csts(path, name="mine").name) == ("pairs", "mine")
    assert task.revision == hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert task.sentences1 == ("A cat.", "A cat, red", "x")
    assert task.sentences2 == ("A dog.", "A dog.", "y")
    assert task.conditions == ("the animal", "the legs", "z")
    assert task.labels.dtype == np.float32
    assert task.label_range == (1.0, 5.0)
    np.testing.assert_array_equal(task.labels, [1, 5, np.nan])
    np.testing.assert_array_equal(task.gold, [0, 1, np.nan])


@pytest.mark.parametrize(
    ("label", "value"),
    [*((text, np.nan) for text in ["", " ", "-1.0", "NaN"]), ("3.0", 3), (" 2.5 ", 2.5)],
)
def test_load_csts_label_spellings_read(write_csts, label, value):
    np.testing.assert_array_equal(load_csts(write_csts(f"A,B,C,{label}\n")).labels, [value])


def test_load_csts_unlabeled_count_logged_and_labels_required(write_csts, caplog):
    with caplog.at_level(logging.INFO, logger="condsim"):
        task = load_csts(write_csts("A,B,C,1\nA,B,D,-1\n"), require_labels=True)
    assert (len(task), "2 rows, 1 labeled, 1 unlabeled" in caplog.text) == (2, True)
    with pytest.raises(InputError, match="no row has a label in the column"):
        load_csts(write_csts("A,B,C,-1\n"), require_labels=True)


def test_iter_csts_label_bad_ignored_without_labels(write_csts):
    assert load_csts(write_csts("?,!,the place?,1\n")).conditions == ("the place?",)
    assert list(iter_csts(write_csts("A,B,C,high\n"), labels=False)) == [("A", "B", "C", None)]


def test_iter_csts_rows_before_fault_yielded(write_csts):
    rows = iter_csts(write_csts("A,B,C,1\nA,B,,2\n"))
    assert next(rows) == ("A", "B", "C", 1.0)
    with pytest.raises(InputError, match="row 2"):
        next(rows)


def test_load_csts_released_counts(released):
    task = load_csts(released("csts-reannotated/train.csv"))
    labels, counts = np.unique(task.labels, return_counts=True)
    assert (len(task), task.revision, labels.tolist()) == (11342, "118ef9354435", [1, 2, 3, 4, 5])
    assert counts.tolist() == [1115, 1902, 3790, 2416, 2119]
    dev = load_csts(released("csts-reannotated/dev.csv"))
    assert (len(dev), int((~dev.valid).sum())) == (1982, 168)


def test_load_csts_original_file_of_another_length_warned(write, caplog):
    load_csts(write("csts_validation.csv", "sentence1,sentence2,condition,label\nA,B,C,1\n"))
    assert "csts_validation.csv: has 1 rows, and 2834 are published" in caplog.text


def test_load_applicability_labels_tell_whether_it_applies(write_csts):
    rows = load_applicability(write_csts("x,y,c,-1\nx,y,d,1\nz,y,c,5.0\nz,y,d,-1.0\n"))
    np.testing.assert_array_equal(rows.labels, [0, 1, 1, 0])
    assert rows.label_range == (0, 1)
    path = write_csts("x,y,c,3\nx,y,d,4\n")
    with pytest.raises(InputError, match=r"got 2 and 0\. 'condsim build weak --absent'"):
        load_applicability(path)
    assert len(load_applicability(path, require_both=False)) == 2
