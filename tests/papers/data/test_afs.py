from __future__ import annotations

import numpy as np
import pytest
from papers.data.afs import cross_validation, load_afs, load_afs_topics

from condsim.data.load import load_task
from condsim.data.tasks import draw_folds, join_tasks
from condsim.errors import InputError
from condsim.types import Task

HEADER = (
    "regression_label,HIT_id,worker_count,datasetId_1,discussionId_1,postId_1,sentenceId_1,"
    "datasetId_2,sentenceId_2,sentence_1,sentence_2\n"
)


def row(label="3.2", sentence1="Guns kill.", sentence2="People kill."):
    return f'{label},7,5,1,2,3,4,5,6,"{sentence1}","{sentence2}"\n'


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_load_task_afs_told_by_its_columns(write, end):
    text = HEADER + row() + row("0", 'He said ""no"", twice', "B")
    task = load_task(write("ArgPairs_GC.csv", text.replace("\n", end).encode()))
    assert (task.name, task.conditions, task.label_range) == ("ArgPairs_GC", None, (0.0, 5.0))
    assert task.sentences1 == ("Guns kill.", 'He said "no", twice')
    assert task.gold.tolist() == pytest.approx([0.64, 0])


def test_load_afs_text_that_went_through_two_encodings_set_right(write):
    wanted = "\u201cIt\u2019s\u201d \u2013 caf\u00e9 \u2014 \u2018x\u2019 \u2022"
    # what wrote the release: UTF-8, taken for Windows-1252 (0x9D is none of it), then Mac Roman
    damaged = b""
    for letter in wanted:
        if letter == "\u00e9":
            damaged += letter.encode("mac_roman")
        elif letter == "\u201d":
            damaged += "\u00e2\u20ac".encode("mac_roman") + b"\x9d"
        else:
            damaged += letter.encode().decode("cp1252").encode("mac_roman")
    data = HEADER.encode() + row(sentence1="MARK").encode().replace(b"MARK", damaged)
    assert load_afs(write("x.csv", data)).sentences1 == (wanted,)
    kept = load_afs(write("x.csv", "\ufeff" + HEADER + row(sentence1=wanted)))
    assert kept.sentences1 == (wanted,)


def test_load_afs_unknown_bytes_stay_characters(write):
    data = (HEADER + row(sentence1="MARK")).encode().replace(b"MARK", b"a\x89\xdb")
    assert load_afs(write("x.csv", data)).sentences1 == ("a\u00e2\u20ac",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + row("6"), r"row 1 \(line 2\), column 'regression_label': must be .* 0 to 5"),
        (HEADER + row() + row(sentence2=" "), r"row 2 .*, column 'sentence_2': must not be"),
        (HEADER + "1,2\n", r"row 1 \(line 2\): must have 11 fields as the header has, got 2"),
        ("", "is empty"),
    ],
)
def test_load_afs_bad_file_is_one_line(write, text, message):
    with pytest.raises(InputError, match=message):
        load_afs(write("x.csv", text))


def test_load_afs_topics_in_order_with_counts_checked(write, tmp_path, caplog):
    for topic in ("GM", "DP"):
        write(f"ArgPairs_{topic}.csv", HEADER + row(sentence1=f"On {topic}."))
    with pytest.raises(InputError, match=r"missing: ArgPairs_GC\.csv"):
        load_afs_topics(tmp_path)
    write("ArgPairs_GC.csv", HEADER + row(sentence1="On GC.") * 2000)
    topics = load_afs_topics(tmp_path)
    assert [topic.name for topic in topics] == ["AFS.DP", "AFS.GC", "AFS.GM"]
    assert len(join_tasks(topics, name="AFS")) == 2002
    assert [record.getMessage().count("1 rows, and 2000") for record in caplog.records] == [1, 1]


def make_task(count=25):
    first = [f"a {row}" for row in range(count)] + ["b 0", "x"]
    second = [f"b {row}" for row in range(count)] + ["a 0", "y"]  # one pair again, turned round
    labels = np.array([*range(count), 1, np.nan], np.float32)
    return Task("afs", "0", tuple(first), tuple(second), None, labels, (0.0, 30.0))


def pairs_of(task):
    return list(zip(task.sentences1, task.sentences2, strict=True))


def test_cross_validation_every_labeled_row_is_tested_once():
    folds = cross_validation(make_task(), folds=10, seed=3)
    assert len(folds) == 10
    tested = [pair for fold in folds for pair in pairs_of(fold.test)]
    assert sorted(tested) == sorted(pairs_of(make_task().labeled()))
    for train, test in folds:
        assert len(train) + len(test) == 26
        assert 2 <= len(test) <= 4
        assert not set(train.sentences1 + train.sentences2) & set(test.sentences1)


def test_cross_validation_seed_decides_and_order_does_not():
    task = make_task()
    turned = task.take(np.arange(len(task))[::-1])
    sets = [
        [set(fold.test.sentences1) for fold in cross_validation(of, folds=5, seed=seed)]
        for of, seed in ((task, 0), (turned, 0), (task, 1))
    ]
    assert sets[0] == sets[1]
    assert sets[0] != sets[2]


def test_draw_folds_pair_in_both_orders_shares_one_and_others_stay():
    pairs = [(f"a {row}", f"b {row}") for row in range(40)]
    turned = [(two, one) for one, two in pairs[:20]]
    folds = draw_folds(pairs + turned, folds=10, seed=0)
    assert folds[40:].tolist() == folds[:20].tolist()
    same = pairs + [
        (f"c {row}", f"d {row}") for row in range(20)
    ]  # by the alphabet where those are
    assert folds[:40].tolist() == draw_folds(same, folds=10, seed=0)[:40].tolist()
