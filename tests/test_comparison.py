"""The comparison: samples, figures on tiny data and the tables of the page."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("sklearn")
from benchmarks.comparison import (
    PAGE,
    agreement,
    duplicate_row,
    precision,
    precision_by_chance,
    score_detector,
)
from benchmarks.comparison_samples import PRODUCT, Facet, draw_products
from benchmarks.comparison_tables import fill

from condsim.errors import InputError
from condsim.model.baselines import WordOverlapScorer
from condsim.model.embedding import EmbeddingScorer

COLORS = ("red", "blue")
TEXTS = [f"a {color} {thing}" for color in COLORS for thing in [f"thing{n}" for n in range(12)]]
FACET = Facet(TEXTS, "the color", np.array([text.split()[1] for text in TEXTS]))


class ColorEncoder(EmbeddingScorer):
    """Embeds the color under a condition, and the last word without one."""

    def __init__(self):
        super().__init__(name="colors", order="condition-first", dimension=2, calibration=None)

    def _embed(self, texts):
        if not isinstance(texts[0], str):
            return np.array([[float(color in text) for color in COLORS] for _, text in texts])
        angles = [len(text) + int(text[-1]) for text in texts]
        return np.array([[np.cos(angle), np.sin(angle)] for angle in angles], np.float32)


@pytest.fixture
def products(tmp_path):
    path = tmp_path / "dev.jsonl"
    rows = [
        {"text1": f"blue cup {n}", "text2": f"{second} {n}", "labels": {PRODUCT: label}}
        for n in range(10)
        for second, label in (("large blue cup", 1), ("red bed", 0))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_precision_right_condition_all_hits_and_without_it_fewer():
    right = precision(FACET, scorer=ColorEncoder(), conditional=True)
    assert (right.value, right.low, right.high) == (100, 100, 100)
    blind = precision(FACET, scorer=ColorEncoder(), conditional=False)
    assert blind.low <= blind.value < 100
    # 11 of the 23 other texts have the same color.
    assert precision_by_chance(FACET).value == pytest.approx(100 * 11 / 23)
    # The words of a text are shared by 11 texts of its color and one of the other.
    assert precision(FACET, scorer=WordOverlapScorer(), conditional=False).value >= 90


def test_agreement_is_the_mean_lowest_and_highest_of_seeds():
    right = agreement(FACET, encoder=ColorEncoder(), conditional=True, topics=False)
    assert (right.value, right.low, right.high) == pytest.approx((100, 100, 100))
    blind = agreement(FACET, encoder=ColorEncoder(), conditional=False, topics=False)
    assert blind.low <= blind.value <= blind.high < 100


def test_duplicate_row_threshold_of_the_first_sample(products):
    with pytest.raises(InputError, match="must have 11 pairs"):
        draw_products(products, pairs=11)
    samples = draw_products(products, pairs=10)
    assert [sum(task.labels) for task in samples] == [5, 5]
    scorer = WordOverlapScorer()
    row = duplicate_row(
        "word overlap", samples, lambda task: score_detector(task, scorer=scorer, conditional=False)
    )
    assert row.startswith("| word overlap | 100.0 [100.0, 100.0] | ")


def test_fill_replaces_the_rows_and_nothing_else():
    text = "a\n<!-- pairs -->\n| x |\n|---|\n| old |\n<!-- /pairs -->\nb\n"
    filled = fill(text, {"pairs": ["| new |"]})
    assert filled == text.replace("old", "new")
    with pytest.raises(InputError, match="<!-- search -->"):
        fill(text, {"search": []})
    rows = {name: ["| new |"] for name in ("pairs", "search", "groups", "duplicates")}
    assert fill(PAGE.read_text(encoding="utf-8"), rows).count("| new |") == 4
