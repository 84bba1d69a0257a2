"""Training data without scores: NLI and triplets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from condsim.data.nli_triplets import NLI_CLASSES, Triplets, load_nli, load_triplets
from condsim.evaluation.metrics import triplet_wins

NLI = "premise\thypothesis\tlabel\n"
ROWS = "A dog runs.\tAn animal runs.\tentailment\nA dog runs.\tA dog sits.\tcontradiction\n"
TRIPLETS = "anchor\tpositive\tnegative\n"


def test_load_nli_classes_are_numbered(write):
    task = load_nli(write("snli.tsv", NLI + ROWS + "A dog runs.\tIt rains.\tNeutral\n"))
    assert (task.name, len(task), task.dropped) == ("snli", 3, 0)
    assert task.premises == ("A dog runs.",) * 3
    assert task.hypotheses[1:] == ("A dog sits.", "It rains.")
    classes = [NLI_CLASSES[number] for number in task.classes]
    assert classes == ["entailment", "contradiction", "neutral"]
    assert task.classes.dtype == np.int64
    part = task.take(np.array([1, 0]))
    assert (part.hypotheses, part.classes.tolist()) == (("A dog sits.", "An animal runs."), [2, 0])


def test_load_nli_rows_without_gold_label_dropped_and_counted(write, caplog):
    caplog.set_level("INFO", logger="condsim")
    task = load_nli(write("snli.tsv", NLI + ROWS + "A\tB\t-\nA\tB\t\n"))
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


def test_load_nli_shared_files_have_the_published_counts(released):
    task = load_nli(released("nli/snli_dev.tsv.gz"))
    assert (task.name, np.bincount(task.classes).tolist()) == ("snli_dev", [3329, 3235, 3278])


def test_load_triplets_rows_read(write):
    triplets = load_triplets(write("sections.tsv", TRIPLETS + "A\tB\tC\nD\tE\tF\n"))
    assert (triplets.name, len(triplets), triplets.dropped) == ("sections", 2, 0)
    assert triplets.anchors == ("A", "D")
    assert (triplets.positives, triplets.negatives) == (("B", "E"), ("C", "F"))
    assert triplets.take(np.array([1])).negatives == ("F",)
    text = 'Sentence1,Sentence2,Sentence3,Article Title\n"A, a",B,C,D\n'
    assert load_triplets(write("released.csv", text)).anchors == ("A, a",)


def test_load_triplets_equal_texts_dropped_and_counted(write, caplog):
    caplog.set_level("INFO", logger="condsim")
    triplets = load_triplets(write("x.tsv", TRIPLETS + "A\tA\tC\nA\tB\tB\nA\tB\tA\nA\tB\tC\n"))
    assert (len(triplets), triplets.dropped) == (1, 3)
    assert "1 triplets, 3 dropped" in caplog.text


def test_triplets_pairs_are_positives_then_negatives():
    pairs = Triplets("x", "0", ("A", "D"), ("B", "E"), ("C", "F")).pairs()
    assert pairs.sentences1 == ("A", "D", "A", "D")
    assert pairs.sentences2 == ("B", "E", "C", "F")
    assert (pairs.gold.tolist(), pairs.conditions) == ([1, 1, 0, 0], None)


def test_triplet_wins_hand_worked_equals():
    # right, wrong, equal (wrong), right
    scores = np.array([0.9, 0.1, 0.5, -0.2, 0.8, 0.2, 0.5, -0.3], np.float32)
    assert triplet_wins(scores).tolist() == [1, 0, 0, 1]
