"""The page of clustering: which texts are taken, the figures and the table."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

pytest.importorskip("sklearn")
from benchmarks.clustering import WAYS, Agreement, measure_set, page, read_set

from condsim.evaluation.statistics import Metric
from condsim.model.embedding import EmbeddingScorer

CRITERIA = ("the color", "the animal")


class WordEncoder(EmbeddingScorer):
    """Sees the color under its condition, and the animal otherwise."""

    def __init__(self):
        super().__init__(name="words", order="condition-first", dimension=4, calibration=None)

    def _embed(self, texts):
        pairs = [("", one) if isinstance(one, str) else one for one in texts]
        words = [
            ("red", "blue", "", "") if "color" in one else ("", "", "cat", "dog")
            for one, _ in pairs
        ]
        found = [
            [w != "" and w in text for w in row]
            for row, (_, text) in zip(words, pairs, strict=True)
        ]
        return np.array(found, np.float32)


def write(path, *, rows):
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        for number in range(rows):
            color, animal = ("red", "blue")[number % 2], ("cat", "dog")[number // 2 % 2]
            values = {"the color": color, "the animal": [animal]}
            if number == 0:
                values["the animal"] = ["cat", "dog"]
            text = f"A {color} {animal}, {number}."
            stream.write(json.dumps({"text": text, "attributes": values}) + "\n")
    return path


def test_measure_right_condition_finds_all_and_the_other_none(tmp_path):
    data = read_set(write(tmp_path / "test.jsonl.gz", rows=45), CRITERIA, texts=100)
    assert len(data.texts) == 44  # the one with two animals is left out
    found = list(measure_set("set", data, WordEncoder(), None, seeds=2))
    assert [(one.criterion, one.clusters) for one in found] == [(name, 2) for name in CRITERIA]
    for one in found:
        for figure in one.figures["right condition"]:
            assert (figure.value, figure.low, figure.high) == pytest.approx((100, 100, 100))
        assert max(figure.high for figure in one.figures["other condition"]) < 5
    assert found[1].figures["no condition"][1].low == pytest.approx(100)


def test_page_says_where_the_right_condition_loses():
    one = Metric(1.0, 0.5, 2.0)
    figures = {way: (Metric(10.0 + place, 9.0, 13.0), one) for place, way in enumerate(WAYS[:3])}
    best = {WAYS[0]: (Metric(50.0, 40.0, 60.0), Metric(30.0, 30.0, 30.0))}
    won = Agreement("films", "the plot", 100, 3, figures | best)
    lost = Agreement("films", "the year", 100, 5, figures)
    text = page([won, lost], model="m", trained=["films"], command="command", seeds=4)
    assert (
        "| films (trained on) | the plot | 100 | 3 | **50.0 [40.0, 60.0] / 30.0 [30.0, 30.0]** | "
        "11.0 [9.0, 13.0] / 1.0 [0.5, 2.0] |"
    ) in text
    assert "the mean over 4 seeds of k-means [lowest, highest]" in text
    assert "| **mean** | | | | 30.0 / 15.5 | 11.0 / 1.0 | 12.0 / 1.0 |" in text
    assert "best in 1 of 2 rows. Where it is not: films, the year." in text
