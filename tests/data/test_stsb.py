from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from condsim.data.load import load_task
from condsim.data.pairs import load_stsb
from condsim.errors import InputError

LINE = "main-captions\tMSRvid\t2012test\t0001\t3.800\tA dog runs.\tA cat runs.\n"


def line(**cells: str) -> str:
    values = {"score": "1.0", "sentence1": "A dog runs.", "sentence2": "A cat runs."} | cells
    return "genre\tfile\tyear\t0001\t" + "\t".join(values.values()) + "\n"


@pytest.fixture
def released() -> Path:
    folder = Path(__file__).resolve().parents[2] / "../shared/data/sts-b"
    if not (folder / "sts-train.csv").is_file():
        pytest.skip("the STS-B files are not here")
    return folder


def test_load_stsb_rows_read_without_conditions(write):
    task = load_stsb(write("sts-dev.csv", LINE + line(score="5", sentence2=" A dog. ")))
    assert (task.name, task.conditions, task.label_range) == ("sts-dev", None, (0.0, 5.0))
    assert task.sentences1 == ("A dog runs.", "A dog runs.")
    assert task.sentences2 == ("A cat runs.", "A dog.")
    assert task.labels.dtype == np.float32
    np.testing.assert_allclose(task.gold, [0.76, 1.0])


def test_load_stsb_quotes_are_characters(write):
    task = load_stsb(write("x.csv", line(sentence1='He said "no.', sentence2='"Yes", he said')))
    assert (task.sentences1, task.sentences2) == (('He said "no.',), ('"Yes", he said',))


def test_load_stsb_source_columns_blank_lines_crlf_and_mark_tolerated(write):
    text = "\ufeff\n" + LINE.replace("\n", "\tsource one\tsource two\r\n") + "\r\n" + LINE
    task = load_stsb(write("x.csv", text))
    assert task.sentences2 == ("A cat runs.", "A cat runs.")


def test_load_stsb_revision_is_hash_of_file_and_name_used(write):
    path = write("x.csv", LINE)
    task = load_stsb(path, name="mine")
    assert task.revision == hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert task.name == "mine"


@pytest.mark.parametrize("score", ["5.01", "-0.1", "nan", "inf", "", "high", "1,5"])
def test_load_stsb_score_bad_names_place(write, score):
    rule = r"row 2 \(line 2\), column 'score': must be a number from 0 to 5, got "
    with pytest.raises(InputError, match=rule + repr(score)):
        load_stsb(write("x.csv", LINE + line(score=score)))


@pytest.mark.parametrize("column", ["sentence1", "sentence2"])
def test_load_stsb_sentence_empty_names_place(write, column):
    rule = rf"row 2 \(line 2\), column '{column}': must not be empty"
    with pytest.raises(InputError, match=rule):
        load_stsb(write("x.csv", LINE + line(**{column: "  "})))


def test_load_stsb_too_few_fields_names_line(write):
    rule = r"x\.csv, line 2: must have at least 7 tab separated .*sentence1, sentence2\), got 6"
    with pytest.raises(InputError, match=rule):
        load_stsb(write("x.csv", LINE + LINE.rpartition("\t")[0]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"x\.csv: is empty"),
        ("\n\r\n", r"x\.csv: has no rows"),
        (LINE.encode() + b"\xff\n", r"x\.csv, line 2, byte .*: not valid UTF-8"),
    ],
)
def test_load_stsb_no_rows_or_no_text_refused(write, content, message):
    with pytest.raises(InputError, match=message):
        load_stsb(write("x.csv", content))


def test_load_stsb_no_file_or_folder_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_stsb(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        load_stsb(tmp_path)


@pytest.mark.parametrize(
    ("split", "rows", "revision"),
    [
        ("train", 5749, "0f71910b59aa"),
        ("dev", 1500, "5d7e944d8b02"),
        ("test", 1379, "affe45928a66"),
    ],
)
def test_load_task_released_stsb_counts(released, split, rows, revision):
    task = load_task(released / f"sts-{split}.csv", require_labels=True)
    assert (len(task), task.revision, task.conditions) == (rows, revision, None)
    assert task.valid.all()
    assert (task.labels.min(), task.labels.max()) == (0, 5)
