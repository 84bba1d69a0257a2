from __future__ import annotations

import math
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from condsim.data.csts import load_csts
from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.metrics import METRICS
from condsim.evaluation.report import Report, to_markdown
from condsim.model.baselines import baseline
from condsim.types import Task

DATA = Path(__file__).resolve().parents[2] / "../shared/data/csts-reannotated"


def test_evaluate_hand_worked_values(make_task, make_scorer):
    # gold: 1 .25 .5 0; ranks of the scores 4 2 3 1 = ranks of gold: Spearman 1
    task = make_task([5, 2, 3, 1])
    scorer = make_scorer("model", [0.9, 0.5, 0.6, 0.2], revision="r7")
    report = evaluate(scorer, task, resamples=20, seed=9)
    assert (report.task, report.task_revision) == ("tiny", "0123456789ab")
    assert (report.seed, report.resamples) == (9, 20)
    assert {"condsim", "numpy", "python"} <= set(report.versions)
    metrics = report.model.metrics
    assert list(metrics) == list(METRICS)
    assert metrics["spearman"].value == pytest.approx(100)
    # (.01 + .0625 + .01 + .04) / 4
    assert metrics["mse"].value == pytest.approx(0.030625)
    assert metrics["pair_accuracy"].value == 100
    assert (report.model.name, report.model.revision) == ("model", "r7")
    assert (report.pairs, report.contrasting_pairs) == (2, 2)


def test_evaluate_unlabeled_rows_are_counted_and_never_scored(make_task, make_scorer):
    nan = math.nan
    labels = [5, 2, 3, nan, nan, nan, 1, 4]
    scorer = make_scorer("model", [0.9, 0.5, 0.6, 0.0, 0.0, 0.0, 0.2, 0.7])
    report = evaluate(scorer, make_task(labels), resamples=5)
    assert (report.rows, report.valid_rows, report.invalid_rows) == (8, 5, 3)
    assert (report.pairs, report.contrasting_pairs) == (3, 2)
    assert scorer.rows_seen == 5
    expected = stats.spearmanr([0.9, 0.5, 0.6, 0.2, 0.7], [5, 2, 3, 1, 4]).statistic
    assert report.model.metrics["spearman"].value == pytest.approx(100 * expected)


def test_evaluate_condition_only_is_always_first(make_task, make_scorer):
    task, scorer = make_task([5, 2, 3, 1]), make_scorer("model", [0.9, 0.5, 0.6, 0.2])
    alone = evaluate(scorer, task, resamples=5)
    assert [result.name for result in alone.baselines] == ["condition-only"]
    assert "out of fold" in alone.baselines[0].fitted_on
    named = evaluate(scorer, task, baselines=["word-overlap", "condition-only"], resamples=5)
    assert [result.name for result in named.baselines] == ["condition-only", "word-overlap"]
    assert named.baselines[1].fitted_on is None
    fitted = baseline("condition-only", train=replace(task, name="other"))
    given = evaluate(scorer, task, condition_only=fitted, resamples=5)
    assert given.baselines[0].fitted_on == "other 0123456789ab"


def test_evaluate_partial_spearman_is_given_the_condition_only_prediction(make_task, make_scorer):
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 6, size=40)
    given, scores = generator.random((2, 40)).astype(np.float32)
    report = evaluate(
        make_scorer("model", scores),
        make_task(labels),
        condition_only=make_scorer("condition-only", given),
        resamples=5,
    )
    ranks = [stats.rankdata(values) for values in (scores, labels, given)]
    r_xy, r_xz, r_yz = (np.corrcoef(ranks[a], ranks[b])[0, 1] for a, b in ((0, 1), (0, 2), (1, 2)))
    expected = (r_xy - r_xz * r_yz) / math.sqrt((1 - r_xz**2) * (1 - r_yz**2))
    assert report.model.metrics["partial_spearman"].value == pytest.approx(100 * expected)
    assert math.isnan(report.baselines[0].metrics["partial_spearman"].value)


def test_evaluate_against_a_clearly_worse_model_is_significant(make_task, make_scorer):
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 6, size=200)
    good = make_scorer("good", labels + generator.normal(scale=0.5, size=200))
    bad = make_scorer("bad", generator.normal(size=200))
    report = evaluate(good, make_task(labels), against=bad, resamples=200)
    difference = report.comparison["spearman"]
    model, other = report.model.metrics["spearman"], report.against.metrics["spearman"]
    assert difference.value == pytest.approx(model.value - other.value)
    assert 0 < difference.low < difference.value < difference.high
    assert difference.p_value == pytest.approx(2 / 201)
    assert model.low < model.value < model.high


def test_evaluate_row_order_changes_no_figure(make_task, make_scorer):
    generator = np.random.default_rng(0)
    task = make_task(generator.integers(1, 6, size=40))
    scorer = make_scorer("model", generator.random(40))
    order = generator.permutation(40)
    shuffled = task.take(order)
    first, second = (evaluate(scorer, rows, resamples=20) for rows in (task, shuffled))
    for left, right in zip(
        (first.model, *first.baselines), (second.model, *second.baselines), strict=True
    ):
        for name in METRICS:
            a, b = left.metrics[name], right.metrics[name]
            assert (a.value, a.low, a.high) == pytest.approx(
                (b.value, b.low, b.high), abs=1e-6, nan_ok=True
            )


def test_evaluate_one_sentence_pair_still_reports(make_task, make_scorer):
    task = make_task([5, 2, 3])
    task = replace(task, sentences1=("A lamp.",) * 3, sentences2=("A bulb.",) * 3)
    report = evaluate(make_scorer("model", [0.9, 0.5, 0.6]), task, resamples=5)
    assert report.pairs == 1
    # no other fold to learn from: every prediction is the middle of the scale
    assert math.isnan(report.baselines[0].metrics["spearman"].value)


def test_evaluate_two_valid_rows_is_an_error(make_task, make_scorer):
    task = make_task([5, 2, math.nan])
    with pytest.raises(InputError, match=r"at least 3 rows with a label; 2 of 3 rows"):
        evaluate(make_scorer("model", [1, 2, 3]), task)


def test_evaluate_condition_only_on_csts_reaches_42():
    if not (DATA / "dev.csv").exists():
        pytest.skip("the C-STS data are not redistributed")
    dev, train = load_csts(DATA / "dev.csv"), load_csts(DATA / "train.csv")
    fitted = baseline("condition-only", train=train)
    report = evaluate(fitted, dev, resamples=200)
    metrics = report.model.metrics
    assert (report.valid_rows, report.invalid_rows) == (1814, 168)
    assert metrics["spearman"].value == pytest.approx(42.4, abs=0.5)
    expected = stats.spearmanr(
        fitted.score(dev.sentences1, dev.sentences2, dev.conditions)[dev.valid],
        dev.labels[dev.valid],
    ).statistic
    assert metrics["spearman"].value == pytest.approx(100 * expected, abs=1e-9)
    assert metrics["spearman"].low < 40 < 44.5 < metrics["spearman"].high
    assert report.baselines[0].metrics["spearman"].value == pytest.approx(40, abs=1.5)


@pytest.fixture
def plain_task():
    # Without conditions, 0 to 5; the first two rows are one sentence pair, labeled twice.
    sentences = ["a red ball", "a red ball", "a blue bike", "the green park", "two dogs run"]
    others = ["the red ball", "the red ball", "a blue car", "two cats", "two dogs run fast"]
    labels = np.asarray([4, 5, 2.5, 0, 4.5], np.float32)
    return Task("plain", "0123456789ab", tuple(sentences), tuple(others), None, labels, (0.0, 5.0))


def test_evaluate_without_conditions_has_no_condition_only_baseline(plain_task, tmp_path):
    overlap = baseline("word-overlap")
    report = evaluate(overlap, plain_task, resamples=20)
    assert report.baselines == ()
    assert (report.pairs, report.contrasting_pairs) == (4, 0)
    metrics = report.model.metrics
    scores = overlap.score(plain_task.sentences1, plain_task.sentences2, None)
    expected = stats.spearmanr(scores, plain_task.labels).statistic
    assert metrics["spearman"].value == pytest.approx(100 * expected)
    assert metrics["mse"].value == pytest.approx(np.square(scores - plain_task.labels / 5).mean())
    for name in ("pair_accuracy", "partial_spearman"):
        assert all(math.isnan(part) for part in astuple(metrics[name]))
    report.to_json(tmp_path / "report.json")
    assert to_markdown(Report.from_json(tmp_path / "report.json")) == to_markdown(report)
    assert "Partial: Spearman once" not in to_markdown(report)


def test_evaluate_without_conditions_condition_only_is_not_used(plain_task):
    model = baseline("word-overlap")
    fitted = baseline("condition-only", train=plain_task)
    names = ["condition-only", "sentences-only"]
    report = evaluate(
        model, plain_task, baselines=names, condition_only=fitted, against=model, resamples=5
    )
    assert [result.name for result in report.baselines] == ["sentences-only"]
    assert report.comparison["spearman"].value == 0
    assert math.isnan(report.comparison["partial_spearman"].p_value)
