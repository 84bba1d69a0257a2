from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from papers.data.sts import load_sts

from condsim.data.load import load_task
from condsim.errors import InputError

TSV = "score\tsentence1\tsentence2\n"
PAIRS = "A dog runs.\tA cat runs.\nA man eats.\tA man cooks.\tsource 1\tsource 2\n"


@pytest.fixture
def semeval(write):
    def write_both(texts, gold, subset="images"):
        write(f"STS.gs.{subset}.txt", gold)
        return write(f"STS.input.{subset}.txt", texts)

    return write_both


def test_load_sts_semeval_pair_of_files_read(semeval):
    task = load_sts(semeval(PAIRS, "4.2\n0\n"))
    assert (task.name, task.conditions, task.label_range) == ("images", None, (0.0, 5.0))
    assert task.sentences1 == ("A dog runs.", "A man eats.")
    assert task.sentences2 == ("A cat runs.", "A man cooks.")
    np.testing.assert_allclose(task.labels, [4.2, 0])


def test_load_sts_semeval_lines_without_gold_left_out(semeval):
    path = semeval("A\tB\r\nC\tD\r\nE\tF\r\n\r\n", "\n5\n\n\n\n")
    task = load_task(path, name="mine")
    assert (task.name, task.sentences1, task.labels.tolist()) == ("mine", ("C",), [5])


def test_load_sts_semeval_surprise_is_no_part_of_the_name(semeval):
    assert load_sts(semeval(PAIRS, "1\n2\n", "surprise.OnWN")).name == "OnWN"


def test_load_sts_semeval_revision_depends_on_both_files(semeval, write, tmp_path):
    first = load_sts(semeval(PAIRS, "1\n2\n")).revision
    assert load_sts(semeval(PAIRS, "1\n3\n")).revision != first
    gold = write("other.txt", "1\n2\n")
    assert load_sts(tmp_path / "STS.input.images.txt", gold=gold).revision == first


@pytest.mark.parametrize(
    ("texts", "gold", "message"),
    [
        (PAIRS, "1\n", r"STS\.gs\.images\.txt: must have one line for each of the 2 lines of STS"),
        (PAIRS, "1\n2\n3\n", r"2 lines of STS\.input\.images\.txt, got 3\. .* copy both again"),
        (PAIRS, "1\n5.5\n", r"gs\.images\.txt, line 2: must be a number from 0 to 5, got '5\.5'"),
        (PAIRS, "1\nhigh\n", r"line 2: must be a number from 0 to 5, got 'high'"),
        (PAIRS, "\n\n", r"none of its 2 lines has a score"),
        ("A\tB\nC\t \n", "1\n2\n", r"input\.images\.txt, line 2: the second sentence must not be"),
        ("A\tB\nC D\n", "1\n2\n", r"line 2: must have 2 sentences with a tab .* got 1 fields"),
        ("", "1\n", r"STS\.input\.images\.txt: is empty"),
    ],
)
def test_load_sts_semeval_bad_files_are_one_line(semeval, texts, gold, message):
    with pytest.raises(InputError, match=message):
        load_sts(semeval(texts, gold))


def test_load_sts_semeval_no_gold_file_named(write):
    with pytest.raises(InputError, match=r"there is no file STS\.gs\.x\.txt beside it"):
        load_task(write("STS.input.x.txt", PAIRS))


def test_load_task_sts_tsv_told_by_score_above_one_or_by_name(write):
    rows = TSV + "0.5\tA\tB\n3.800\tSay \"no\t'B'\n"
    for name, content in (("x.tsv", rows), ("x.tsv.gz", gzip.compress(rows.encode()))):
        task = load_task(write(name, content))
        assert (task.name, task.label_range) == ("x", (0.0, 5.0))
        assert task.sentences1 == ("A", 'Say "no')
    low = TSV + "0.5\tA\tB\n"
    assert load_task(write("sts12.MSRpar.test.tsv", low)).label_range == (0.0, 5.0)


def test_load_sts_tsv_bad_score_names_place(write):
    with pytest.raises(InputError, match=r"row 2 \(line 3\), column 'score': must be .* 0 to 5"):
        load_task(write("x.tsv", TSV + "2\tA\tB\n7\tA\tB\n"))


def test_load_sts_count_other_than_published_warned(write, caplog):
    path = write("sts12.MSRpar.test.tsv", TSV + "2\tA\tB\n")
    load_sts(path)
    assert "sts12.MSRpar.test.tsv: has 1 rows, and 750 are published" in caplog.text


def test_load_task_released_sts_has_published_counts(caplog):
    folder = Path(__file__).resolve().parents[3] / "../shared/data/sts12-16"
    if not folder.is_dir():
        pytest.skip("the STS files are not here")
    files = sorted(folder.glob("sts*.tsv"))
    rows = [len(load_task(path, require_labels=True)) for path in files]
    assert (len(rows), sum(rows)) == (24, 12544)
    assert not caplog.records
