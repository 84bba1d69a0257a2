from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from papers.suite.data import load_sts_suite
from papers.suite.tables import PUBLISHED, sts_markdown

from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.loading import named_scorer
from papers.suite import measure_suite

pytest.importorskip("sklearn")


class OverlapScorer:
    """Scores row by row: shared words."""

    name = "shared-words"

    def score(self, sentences1, sentences2, conditions):
        pairs_ = zip(sentences1, sentences2, strict=True)
        return np.array([len(set(a.split()) & set(b.split())) for a, b in pairs_], np.float32)


@pytest.fixture
def overlap():
    return OverlapScorer()


def test_measure_suite_figures_are_those_of_a_single_evaluation(data_sets, letters):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    report = measure_suite([letters()], tasks, resamples=50)
    row = report.rows[-1]
    single = evaluate(letters(), tasks[0].task, baselines=["tfidf-cosine"], resamples=50)
    found = row.figures["sts12"]["spearman"]
    expected = single.model.metrics["spearman"]
    assert found.value == pytest.approx(expected.value)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    mean = np.mean([row.figures[task.key]["spearman"].value for task in tasks])
    assert row.figures["avg"]["spearman"].value == pytest.approx(mean)


def test_measure_suite_encodes_each_distinct_sentence_once(data_sets, letters, monkeypatch):
    monkeypatch.setattr("papers.suite.scoring._SENTENCES_PER_BLOCK", 4)
    tasks = load_sts_suite(data_sets.everything(), "sts")
    scorer = letters()
    measure_suite([scorer], tasks)
    texts = {text for task in tasks for text in (*task.task.sentences1, *task.task.sentences2)}
    assert sorted(scorer.embedded) == sorted(texts)
    lengths = [len(text) for text in scorer.embedded]
    blocks = [sorted(lengths[start : start + 4]) for start in range(0, len(lengths), 4)]
    assert all(block[0] >= after[-1] for block, after in pairwise(blocks))  # the longest first


def test_measure_suite_learned_baselines_are_on_conditions_only(data_sets, overlap):
    tasks = load_sts_suite(data_sets.everything(), "all")
    report = measure_suite([overlap], tasks)
    by_name = {row.name: row for row in report.rows}
    names = ["tfidf-cosine", "word-overlap", "condition-only", "sentences-only", "shared-words"]
    assert list(by_name) == names
    assert list(by_name["condition-only"].figures) == ["csts"]
    assert len(by_name["word-overlap"].figures) == 9  # eight data sets and the mean
    data_sets.csts(train=False)
    (data_sets.root / "my-csts" / "train.csv").unlink()
    out_of_fold = measure_suite([overlap], load_sts_suite(data_sets.root, "csts"))
    assert list(out_of_fold.rows[2].figures) == ["csts"]


def test_measure_suite_marks_are_paired_differences(data_sets, letters, overlap):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    report = measure_suite([letters(), overlap], tasks, resamples=100)
    assert report.against == "letters"
    by_name = {row.name: row for row in report.rows}
    assert by_name["letters"].comparison == {}
    difference = by_name["shared-words"].comparison["sts12"]
    gap = [by_name[name].figures["sts12"]["spearman"].value for name in ("shared-words", "letters")]
    assert difference.value == pytest.approx(gap[0] - gap[1])
    assert 0 < difference.p_value <= 1


def test_measure_suite_precision_is_told(data_sets, tiny_backbone):
    pytest.importorskip("sentence_transformers")
    data_sets.sick()
    tasks, scorers = load_sts_suite(data_sets.root, "all"), [named_scorer(f"mean:{tiny_backbone}")]
    assert measure_suite(scorers, tasks, precision="float32").rows[-1].numbers == "float32"
    report = measure_suite(scorers, tasks, precision="bfloat16")
    assert f"Computed in bfloat16: {report.rows[-1].name}" in sts_markdown(report)
    with pytest.raises(InputError, match="Unknown precision 'half'"):
        measure_suite(scorers, tasks, precision="half")


@pytest.fixture
def report(data_sets, letters):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    return measure_suite([letters(name="letters|*")], tasks)


def test_suite_markdown_is_one_pipe_table(report):
    text = sts_markdown(report)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {len(report.columns) + 3}
    assert "| **letters\\|\\*** |" in text
    assert "| *Avg. GloVe (SSBC)* | *55.14* |" in text
    assert text.endswith("\n")


def test_suite_markdown_data_with_other_rows_have_no_published_figure(data_sets, letters):
    data_sets.triplets()
    released = load_sts_suite(data_sets.root, "wiki-sections")
    assert "60.94" in sts_markdown(measure_suite([letters()], released))
    path = data_sets.folder("drawn") / "sections-dev.tsv"
    path.write_text("anchor\tpositive\tnegative\nA b.\tA b c.\tD e.\n")
    (data_sets.root / "wikipedia-sections" / "test.csv").unlink()
    other = load_sts_suite(data_sets.root, "wiki-sections")
    text = sts_markdown(measure_suite([letters()], other))
    assert "60.94" not in text
    assert "other rows than published ones" in text


def test_published_means_are_those_of_the_seven_columns():
    seven = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
    ssbc = [row for row in PUBLISHED if row.source == "SSBC"]
    assert len(ssbc) == 26
    for row in ssbc:
        mean = np.mean([row.figures[key] for key in seven])
        assert row.figures["avg"] == pytest.approx(mean, abs=0.0051), row.name
    assert sum("wiki-sections" in row.figures for row in ssbc) == 11
