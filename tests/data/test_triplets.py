from __future__ import annotations

import numpy as np
import pytest

from condsim.data.load import load_task
from condsim.data.triplets import Triplets, load_triplets
from condsim.errors import InputError
from condsim.evaluation.metrics import triplet_wins

HEADER = "anchor\tpositive\tnegative\n"


def test_load_triplets_rows_read(write):
    triplets = load_triplets(write("sections.tsv", HEADER + "A\tB\tC\nD\tE\tF\n"))
    assert (triplets.name, len(triplets), triplets.dropped) == ("sections", 2, 0)
    assert triplets.anchors == ("A", "D")
    assert (triplets.positives, triplets.negatives) == (("B", "E"), ("C", "F"))
    assert triplets.take(np.array([1])).negatives == ("F",)


def test_load_triplets_released_columns_read(write):
    text = 'Sentence1,Sentence2,Sentence3,Article Title\n"A, a",B,C,D\n'
    assert load_triplets(write("train.csv", text)).anchors == ("A, a",)


def test_load_triplets_equal_texts_dropped_and_counted(write, caplog):
    caplog.set_level("INFO", logger="condsim")
    triplets = load_triplets(write("x.tsv", HEADER + "A\tA\tC\nA\tB\tB\nA\tB\tA\nA\tB\tC\n"))
    assert (len(triplets), triplets.dropped) == (1, 3)
    assert "1 triplets, 3 dropped" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "A\t\tC\n", r"row 1 \(line 2\), column 'positive': must not be empty"),
        (HEADER + "A\tA\tC\n", "needs three different texts"),
        ("anchor\tpositive\nA\tB\n", "column 'negative' is missing"),
    ],
)
def test_load_triplets_bad_text_is_one_line(write, text, message):
    with pytest.raises(InputError, match=message):
        load_triplets(write("x.tsv", text))


def test_load_task_triplets_says_what_they_are_for(write):
    with pytest.raises(InputError, match=r"contains triplets.*objective 'triplet'"):
        load_task(write("x.tsv", HEADER + "A\tB\tC\n"))


def test_triplets_pairs_are_positives_then_negatives():
    pairs = Triplets("x", "0", ("A", "D"), ("B", "E"), ("C", "F")).pairs()
    assert pairs.sentences1 == ("A", "D", "A", "D")
    assert pairs.sentences2 == ("B", "E", "C", "F")
    assert (pairs.gold.tolist(), pairs.conditions) == ([1, 1, 0, 0], None)


def test_triplet_wins_hand_worked_equals():
    # right, wrong, equal (wrong), right
    scores = np.array([0.9, 0.1, 0.5, -0.2, 0.8, 0.2, 0.5, -0.3], np.float32)
    assert triplet_wins(scores).tolist() == [1, 0, 0, 1]
