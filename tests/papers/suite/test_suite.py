from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from papers.suite.data import load_sts_suite
from papers.suite.tables import sts_markdown

from condsim.errors import InputError, ModelError
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.statistics import spearman
from condsim.evaluation.suite import SuiteReport
from condsim.loading import named_scorer
from papers.suite import measure_suite

pytest.importorskip("sklearn")


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


def test_measure_suite_condition_is_given_to_pairs_without_one(data_sets, letters):
    scorer = letters()
    measure_suite([scorer], load_sts_suite(data_sets.everything(), "all"), condition="the place")
    starts = {text.split(" | ")[0] for text in scorer.embedded}
    assert starts == {"the place", "the street", "how well"}


def test_measure_suite_aggregations_differ_as_defined(data_sets, letters):
    data_sets.sts(2012)
    tasks = load_sts_suite(data_sets.root, "sts")
    rows = tasks[0].task
    scores = letters().score(rows.sentences1, rows.sentences2)
    parts = [slice(start, start + 6) for start in range(0, 30, 6)]
    each = [100 * spearman(scores[part], rows.labels[part]) for part in parts]
    for how in ("mean", "wmean"):
        report = measure_suite([letters()], tasks, aggregation=how, resamples=10)
        figure = report.rows[-1].figures["sts12"]["spearman"]
        assert figure.value == pytest.approx(np.mean(each))  # subsets of one size
        assert figure.low <= figure.high


def test_measure_suite_learnt_baselines_are_on_conditions_only(data_sets, overlap):
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
    same = measure_suite([letters(), letters(name="twin")], tasks, resamples=20)
    assert same.rows[-1].comparison["sts12"].p_value == 1


def test_measure_suite_triplets_give_accuracy(data_sets, overlap):
    data_sets.triplets()
    report = measure_suite([overlap], load_sts_suite(data_sets.root, "wiki-sections"), resamples=10)
    assert report.rows[-1].figures["wiki-sections"]["accuracy"].value == 100
    assert report.columns[0].rows == 6


def test_measure_suite_json_and_csv_hold_every_figure(data_sets, letters, tmp_path):
    tasks = load_sts_suite(data_sets.everything(), "all")
    report = measure_suite([letters()], tasks, resamples=10, against="word-overlap")
    report.to_json(tmp_path / "suite.json")
    assert SuiteReport.from_json(tmp_path / "suite.json") == report
    report.to_csv(tmp_path / "suite.csv")
    lines = (tmp_path / "suite.csv").read_text().splitlines()
    assert lines[0] == "model,task,figure,value,low,high,difference,p_value"
    figures = sum(len(found) for row in report.rows for found in row.figures.values())
    assert len(lines) == 1 + figures
    without = measure_suite([letters()], tasks)
    without.to_json(tmp_path / "suite.json")
    read = SuiteReport.from_json(tmp_path / "suite.json")
    assert math.isnan(read.rows[0].figures["sts12"]["spearman"].low)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scorers": ["tfidf-cosine"]}, "Two scorers are called 'tfidf-cosine'"),
        ({"scorers": ["a=default", "a=other"]}, "Two scorers are called 'a'"),
        ({"against": "letter"}, "Unknown scorer to compare with 'letter'"),
        ({"resamples": -1}, "at least one data set and 0 resamples"),
        ({"tasks": []}, "at least one data set"),
        ({"scorers": [], "baselines": []}, "at least one scorer or baseline"),
    ],
)
def test_measure_suite_bad_request_is_one_line(data_sets, letters, options, message):
    data_sets.sick()
    given = {"scorers": [letters()], "tasks": load_sts_suite(data_sets.root, "sts"), **options}
    given["scorers"] = [
        named_scorer(one) if isinstance(one, str) else one for one in given["scorers"]
    ]
    with pytest.raises(InputError, match=message):
        measure_suite(given.pop("scorers"), given.pop("tasks"), **given)


def test_measure_suite_score_that_is_no_number_names_model_and_data(data_sets, overlap):
    data_sets.sick()
    overlap.score = lambda *rows: np.full(len(rows[0]), np.nan, np.float32)
    message = r"shared-words on SICK-R: every score must be a finite number; got nan for row 1 "
    with pytest.raises(ModelError, match=message):
        measure_suite([overlap], load_sts_suite(data_sets.root, "sts"))


def test_suite_report_file_of_another_kind_is_an_error(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"format": 1, "rows": []}')
    with pytest.raises(InputError, match=r"x\.json"):
        SuiteReport.from_json(path)


def test_measure_suite_precision_is_told(data_sets, tiny_backbone):
    pytest.importorskip("sentence_transformers")
    data_sets.sick()
    tasks, scorers = load_sts_suite(data_sets.root, "all"), [named_scorer(f"mean:{tiny_backbone}")]
    assert measure_suite(scorers, tasks, precision="float32").rows[-1].numbers == "float32"
    report = measure_suite(scorers, tasks, precision="bfloat16")
    assert f"Computed in bfloat16: {report.rows[-1].name}" in sts_markdown(report)
    with pytest.raises(InputError, match="Unknown precision 'half'"):
        measure_suite(scorers, tasks, precision="half")
