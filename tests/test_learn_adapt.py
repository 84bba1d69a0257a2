"""A criterion against an adapted model: the pairs of labeled texts, and the page."""

from __future__ import annotations

import csv

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")
from benchmarks.learn_adapt import page, write_pairs
from benchmarks.learn_curve import Set


def test_write_pairs_as_many_alike_as_different(tmp_path):
    texts, values = ["a", "b", "c", "d", "untouched"], ["x", "x", "y", "y", "x"]
    data = Set("films", "the plot", texts, values, np.zeros((5, 2)), {})
    write_pairs(data, [0, 1, 2, 3], tmp_path / "pairs.csv")
    with (tmp_path / "pairs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    alike = [row for row in rows if row["label"] == "alike"]
    assert {frozenset((r["sentence1"], r["sentence2"])) for r in alike} == {
        frozenset("ab"),
        frozenset("cd"),
    }
    assert len(rows) == 4
    assert {row["condition"] for row in rows} == {"the plot"}


def test_page_means_and_a_row_for_each_number_of_labels():
    figures = {"condition alone": 70.0, "criterion": 80.0, "adapted": 75.0, "pairs": 600}
    runs = [{**figures, "helped": helped, "minutes": 2.0} for helped in (0.0, 1.0)]
    text = page({"50": {"films: the plot": runs}})
    assert "| films: the plot | 50 | 70.0 | 80.0 | 75.0 | 600 | 1 of 2 | 2.0 |" in text
    gains = "+5.0 [+5.0, +5.0] | -5.0 [-5.0, -5.0]"
    assert f"| 50 | 1 | 2 | 70.0 | 80.0 | 75.0 | {gains} | 2.0 |" in text
