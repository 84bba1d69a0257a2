from __future__ import annotations

import json

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.suite import evaluate_suite
from condsim.evaluation.suite_data import WithoutCondition, load_suite
from condsim.evaluation.suite_tables import suite_markdown

PAIRS = "text1,text2,condition,label,unit\n"


class Lengths:
    """Scores a pair by the length of its second text, and by that of the condition if given."""

    def __init__(self, name="lengths"):
        self.name = name

    def score(self, sentences1, sentences2, conditions, /):
        scores = [len(text) for text in sentences2]
        if conditions is not None:
            scores = [score - 10 * len(c) for score, c in zip(scores, conditions, strict=True)]
        return np.array(scores, np.float32)


class Unloaded:
    """Loads nothing."""

    name = "lengths"

    def open(self):
        return Lengths()

    def revision(self):
        return None


@pytest.fixture
def write(tmp_path):
    def write_suite(content, **spec):
        entry = {"family": "graded", "title": "a test", "file": "test.csv", **spec}
        (tmp_path / "suite.json").write_text(json.dumps([entry]))
        (tmp_path / "test.csv").write_text(content)
        return load_suite(tmp_path, "natural")

    return write_suite


def figure(sets, scorer=None):
    report = evaluate_suite([scorer or Lengths()], sets, resamples=20)
    return report.rows[0].figures["graded: a test"]["points"]


def rows(*cells):
    return PAIRS + "".join(f"a,{'x' * length},c,{label},{unit}\n" for length, label, unit in cells)


def test_spearman_of_the_same_order_is_100(write):
    sets = write(rows((1, 0.5, 1), (2, 2, 2), (3, 4, 3)), measure="spearman")
    assert figure(sets).value == pytest.approx(100)


def test_auroc_counts_ties_half(write):
    # Scores 3, 1 of positive rows, 1, 0 of negative ones: 2 + 1.5 of 4 comparisons.
    sets = write(rows((4, 1, 1), (2, 1, 2), (2, 0, 3), (1, 0, 4)), measure="auroc")
    assert figure(sets).value == pytest.approx(100 * 3.5 / 4)


def test_average_precision_by_hand(write):
    # Positives at ranks 1 and 3: (1/1 + 2/3) / 2.
    sets = write(rows((4, 1, 1), (3, 0, 2), (2, 1, 3), (1, 0, 4)), measure="average_precision")
    assert figure(sets).value == pytest.approx(100 * (1 + 2 / 3) / 2)


def test_order_compares_rows_of_a_unit_only(write):
    # In unit 1 the higher label is longer, in unit 2 it is not.
    sets = write(rows((2, 1, 1), (1, 0, 1), (8, 0, 2), (9, 0, 2), (5, 1, 2)), measure="order")
    assert figure(sets).value == pytest.approx(100 / 3)


def test_nearest_counts_neighbours_of_the_same_value(write):
    class Values(Lengths):
        def score(self, sentences1, sentences2, conditions, /):
            pairs = zip(sentences1, sentences2, strict=True)
            return np.array([a[0] == b[0] for a, b in pairs], np.float32)

    texts = [f"{value}{number},{value}" for value in "ab" for number in range(12)]
    sets = write("text,value\n" + "\n".join(texts), measure="nearest", condition="the letter")
    assert figure(sets, Values()).value == pytest.approx(100)


def test_first_hit_looks_on_the_other_side_only(write):
    content = "text,value,side\nq1,v1,1\nq2,v2,1\nlonger,v1,2\nx,v2,2\n"
    sets = write(content, measure="first_hit", condition="the product")
    assert len(sets[0].task) == 4
    assert figure(sets).value == pytest.approx(50)


def test_without_condition_scores_plainly(write):
    content = PAIRS + "a,xx,long condition,1,1\na,x,c,0,2\n"
    report = evaluate_suite(
        [Unloaded(), WithoutCondition(Unloaded())], write(content, measure="auroc"), resamples=0
    )
    points = [row.figures["graded: a test"]["points"].value for row in report.rows]
    assert points == [0, 100]
    assert "lengths, no condition" in suite_markdown(report)


@pytest.mark.parametrize(
    ("content", "spec", "message"),
    [
        (rows((1, 1, 1), (2, 1, 2)), {"measure": "spearman"}, "do not differ"),
        (rows((1, 1, 1), (2, 3, 2)), {"measure": "auroc"}, "labels 0 and 1"),
        ("text,value\na,1\nb,2\n", {"measure": "nearest", "condition": "c"}, "enough other"),
        ("text,value\na,1\nb,1\n", {"measure": "nearest"}, "its 'condition'"),
        ("", {"measure": "precision"}, "measure"),
    ],
)
def test_load_natural_sets_bad_input_is_one_line(write, content, spec, message):
    with pytest.raises(InputError, match=message):
        write(content, **spec)
