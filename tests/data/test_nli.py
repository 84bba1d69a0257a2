from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.load import load_task
from condsim.data.nli import NLI_CLASSES, load_nli
from condsim.errors import InputError

HEADER = "premise\thypothesis\tlabel\n"
ROWS = "A dog runs.\tAn animal runs.\tentailment\nA dog runs.\tA dog sits.\tcontradiction\n"


@pytest.fixture
def released() -> Path:
    folder = Path(__file__).resolve().parents[2] / "../shared/data/nli"
    if not (folder / "snli_dev.tsv.gz").is_file():
        pytest.skip("the NLI files are not here")
    return folder


def test_load_nli_classes_are_numbered(write):
    task = load_nli(write("snli.tsv", HEADER + ROWS + "A dog runs.\tIt rains.\tNeutral\n"))
    assert (task.name, len(task), task.dropped) == ("snli", 3, 0)
    assert task.premises == ("A dog runs.",) * 3
    assert task.hypotheses[1:] == ("A dog sits.", "It rains.")
    assert [NLI_CLASSES[number] for number in task.classes] == [
        "entailment",
        "contradiction",
        "neutral",
    ]
    assert task.classes.dtype == np.int64


def test_load_nli_rows_without_gold_label_dropped_and_counted(write, caplog):
    caplog.set_level("INFO", logger="condsim")
    task = load_nli(write("snli.tsv", HEADER + ROWS + "A\tB\t-\nA\tB\t\n"))
    assert (len(task), task.dropped) == (2, 2)
    assert "2 rows (1 entailment, 0 neutral, 1 contradiction), 2 dropped" in caplog.text


def test_load_nli_released_jsonl_and_hub_parquet_read(write, tmp_path):
    row = '{"annotators": ["neutral"], "gold_label": "%s", "sentence1": "A", "sentence2": "B"}\n'
    task = load_nli(write("x.jsonl", row % "neutral" + row % "-"))
    assert (task.premises, task.hypotheses, task.classes.tolist()) == (("A",), ("B",), [1])
    for labels in ([2, -1], [2.0, None], [2.0, float("nan")], ["2.0", "-1.0"]):  # as pandas writes
        columns = {"premise": ["A", "A"], "hypothesis": ["B", "C"], "label": labels}
        pq.write_table(pa.table(columns), tmp_path / "x.parquet")
        task = load_nli(tmp_path / "x.parquet")
        assert (task.hypotheses, task.classes.tolist(), task.dropped) == (("B",), [2], 1)


def test_nli_task_take_keeps_the_order(write):
    task = load_nli(write("x.tsv", HEADER + ROWS)).take(np.array([1, 0]))
    assert task.hypotheses == ("A dog sits.", "An animal runs.")
    assert task.classes.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "A\tB\tentails\n", r"column 'label': must be one of entailment, .*got 'entails'"),
        (HEADER + "A\tB\t3\n", "got '3'"),
        (HEADER + "A\t\tneutral\n", "column 'hypothesis': must not be empty"),
        (HEADER + "A\tB\t-\n", "none of the 1 rows has a gold label"),
        ("premise\tlabel\nA\tneutral\n", "column 'hypothesis' is missing"),
    ],
)
def test_load_nli_bad_text_is_one_line(write, text, message):
    with pytest.raises(InputError, match=message):
        load_nli(write("x.tsv", text))


def test_load_task_nli_says_what_it_is_for(write):
    with pytest.raises(InputError, match=r"contains classes of NLI.*objective 'softmax'"):
        load_task(write("x.tsv", HEADER + ROWS))


def test_load_nli_shared_files_have_the_published_counts(released):
    task = load_nli(released / "snli_dev.tsv.gz")
    assert (task.name, np.bincount(task.classes).tolist()) == ("snli_dev", [3329, 3235, 3278])
