"""Files of any kind: told apart, read as scored pairs or STS-B, or fetched from the Hub."""

from __future__ import annotations

import gzip
import os
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.batch import BlankRows
from condsim.data.load import HubName, load_pairs, load_stsb, load_task, parse_hub_name
from condsim.data.tasks import describe
from condsim.errors import InputError, MissingExtraError

CSTS = "sentence1,sentence2,condition,label\n"
SCORED = "sentence1,sentence2,score\n"
STSB = "main-captions\tMSRvid\t2012test\t0001\t3.800\tA dog runs.\tA cat runs.\n"
PAIR = {"sentence1": "A dog.", "sentence2": "A cat."}


@pytest.mark.parametrize("start", ["", "\ufeff", "\n\r\n"])
def test_load_task_stsb_told_by_its_first_line(write, start):
    # U+2028 ends no line
    task = load_task(write("x.txt", start + STSB + "a\u2028b" + STSB), name="mine")
    assert (task.name, len(task), task.conditions) == ("mine", 2, None)


def test_load_task_csts_of_as_many_columns_as_stsb(write):
    wide = [*CSTS.strip().split(","), "e", "f", "g"]
    task = load_task(write("x.tsv", "\t".join(wide) + "\nA\tB\tC\t4\t1\t2\t3\n"))
    assert task.label_range == (1.0, 5.0)


def test_load_task_what_is_no_file_refused(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    for path, message in (
        (tmp_path / "p.csv", "is not a regular file, and is read twice"),
        ("-", "A command reads standard input"),
    ):
        with pytest.raises(InputError, match=message):
            load_task(path)


def test_load_pairs_rows_read_without_conditions(write):
    task = load_pairs(
        write("harvest.csv", SCORED + "A dog runs.,A cat runs.,0.25\nA,A dog runs.,1\n")
    )
    assert (task.name, len(task), task.conditions) == ("harvest", 2, None)
    assert (task.sentences1, task.sentences2) == (
        ("A dog runs.", "A"),
        ("A cat runs.", "A dog runs."),
    )
    # A text is held once.
    assert task.sentences1[0] is task.sentences2[1]
    assert task.labels.dtype == np.float32
    assert task.gold.tolist() == [0.25, 1.0]
    assert task.valid.all()


def test_load_task_scored_pairs_told_by_their_columns(write, tmp_path):
    rows = '{"sentence1": "A", "sentence2": "B", "score": 0.5, "kind": "random"}\n'
    columns = {"sentence1": ["A"], "sentence2": ["B"], "score": pa.array([0.5], pa.float32())}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    for path in (
        write("x.csv", SCORED + "A,B,0.5\n"),
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


def test_load_pairs_score_above_one_means_ratings_to_five(write):
    task = load_task(write("x.csv", SCORED + "A,B,0.5\nA,C,1.02\n"))
    assert (task.label_range, task.labels.tolist()) == ((0.0, 5.0), pytest.approx([0.5, 1.02]))


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", gzip.compress(b"a" * 9000, mtime=0)[:-20]])
def test_load_pairs_damaged_gzip_is_one_line(write, content):
    with pytest.raises(InputError, match=r"is empty|cannot be read|has no rows"):
        load_pairs(write("x.csv.gz", content))


def test_load_task_scored_pairs_without_text_left_out_and_counted(write):
    path = write("x.csv", SCORED + "A,B,0.5\n,C,1\nD,E,0.25\n")
    blank = BlankRows()
    assert load_task(path, blank=blank).gold.tolist() == [0.5, 0.25]
    assert blank.count == 1
    for strict in (None, BlankRows(strict=True)):
        with pytest.raises(InputError, match=r"row 2 .*'sentence1': must not be empty"):
            load_task(path, blank=strict)


def line(**cells: str) -> str:
    values = {"score": "1.0", "sentence1": "A dog runs.", "sentence2": "A cat runs."} | cells
    return "genre\tfile\tyear\t0001\t" + "\t".join(values.values()) + "\n"


def test_load_stsb_rows_read_without_conditions(write):
    task = load_stsb(write("sts-dev.csv", STSB + line(score="5", sentence2=" A dog. ")))
    assert (task.name, task.conditions, task.label_range) == ("sts-dev", None, (0.0, 5.0))
    assert task.sentences1 == ("A dog runs.", "A dog runs.")
    assert task.sentences2 == ("A cat runs.", "A dog.")
    assert task.labels.dtype == np.float32
    np.testing.assert_allclose(task.gold, [0.76, 1.0])


def test_load_stsb_quotes_are_characters(write):
    task = load_stsb(write("x.csv", line(sentence1='He said "no.', sentence2='"Yes", he said')))
    assert (task.sentences1, task.sentences2) == (('He said "no.',), ('"Yes", he said',))


def test_load_stsb_source_columns_blank_lines_crlf_and_mark_tolerated(write):
    text = "\ufeff\n" + STSB.replace("\n", "\tsource one\tsource two\r\n") + "\r\n" + STSB
    task = load_stsb(write("x.csv", text))
    assert task.sentences2 == ("A cat runs.", "A cat runs.")


@pytest.mark.parametrize(
    ("split", "rows", "revision"),
    [
        ("train", 5749, "0f71910b59aa"),
        ("dev", 1500, "5d7e944d8b02"),
        ("test", 1379, "affe45928a66"),
    ],
)
def test_load_task_released_stsb_counts(released, split, rows, revision):
    task = load_task(released(f"sts-b/sts-{split}.csv"), require_labels=True)
    assert (len(task), task.revision, task.conditions) == (rows, revision, None)
    assert task.valid.all()
    assert (task.labels.min(), task.labels.max()) == (0, 5)


class DatasetsError(Exception):
    pass


@pytest.fixture
def hub(monkeypatch):
    """A datasets library that serves rows, or fails, and remembers what it was asked."""
    fake = SimpleNamespace(rows=[], error=None, asked=[])

    def load_dataset(dataset, config, *, split, revision):
        fake.asked.append((dataset, config, split, revision))
        if fake.error is not None:
            raise fake.error
        return fake.rows

    library = SimpleNamespace(
        load_dataset=load_dataset, exceptions=SimpleNamespace(DatasetsError=DatasetsError)
    )
    monkeypatch.setitem(sys.modules, "datasets", library)
    return fake


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("hub:a/b@1f", HubName("a/b", None, "1f", "test"), "b"),
        ("hub:a-c/b.d/e@v1.0#train", HubName("a-c/b.d", "e", "v1.0", "train"), "b.d-e-train"),
        ("hub:a/b@refs/pr/1", HubName("a/b", None, "refs/pr/1", "test"), "b"),
        ("pairs.csv", None, ""),
    ],
)
def test_parse_hub_name_forms(text, name, title):
    assert parse_hub_name(text) == name
    assert name is None or name.title == title


@pytest.mark.parametrize("text", ["hub:mteb/sts12-sts", "hub:x@1", "hub:", "hub:a/b@1#"])
def test_parse_hub_name_without_revision_refused(text):
    with pytest.raises(InputError, match="expected hub:owner/name@revision"):
        load_task(text)


def test_load_task_hub_scale_of_the_scores_detected(hub):
    hub.rows = [PAIR | {"score": 0.5, "year": None}, PAIR | {"score": 4.0}]
    task = load_task("hub:mteb/sts12-sts@1f2e")
    assert hub.asked == [("mteb/sts12-sts", None, "test", "1f2e")]
    assert (task.name, task.label_range, task.labels.tolist()) == ("sts12-sts", (0, 5), [0.5, 4])
    assert task.revision == load_task("hub:mteb/sts12-sts@main").revision  # of the rows


def test_load_task_hub_other_set_told_by_its_columns(hub):
    hub.rows = [PAIR | {"condition": "the animal", "label": 1}]
    task = load_task("hub:some/csts@main#validation", require_labels=True)
    assert (task.name, task.conditions) == ("csts-validation", ("the animal",))
    hub.rows = [PAIR | {"score": 1.5}]
    assert load_task("hub:some/pairs@main").label_range == (1, 5)
    hub.rows.append(PAIR | {"score": 0.5})
    assert load_task("hub:some/pairs@main").label_range == (0, 5)
    hub.rows = [PAIR | {"score": 1}]
    assert load_task("hub:mteb/sickr-sts@main").label_range == (1, 5)


def test_load_task_hub_split_without_labels_says_so(hub):
    hub.rows = [PAIR | {"label": -1.0}]
    with pytest.raises(InputError, match="no row has a label in the column 'score'"):
        load_task("hub:nyu-mll/glue/stsb@main", require_labels=True)


@pytest.mark.parametrize(
    "error",
    [ConnectionError("Couldn't reach it\non the Hub"), ValueError(""), DatasetsError("broken")],
)
def test_load_task_hub_out_of_reach_or_without_library_is_one_line(hub, monkeypatch, error):
    hub.error = error
    with pytest.raises(InputError, match=r"cannot be downloaded: .+\.") as caught:
        load_task("hub:mteb/sts12-sts@main")
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'condsim\[train\]'"):
        load_task("hub:mteb/sts12-sts@main")
