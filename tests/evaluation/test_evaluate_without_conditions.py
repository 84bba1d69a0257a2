"""A task without conditions, such as STS-B: no condition-only baseline, no high and low rows."""

from __future__ import annotations

import math
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.report import Report, to_markdown
from condsim.model.baselines import baseline
from condsim.types import Task

STSB = Path(__file__).resolve().parents[2] / "../shared/data/sts-b/sts-dev.csv"


@pytest.fixture
def plain_task():
    # Without conditions, 0 to 5; the first two rows are one sentence pair, labelled twice.
    sentences = ["a red ball", "a red ball", "a blue bike", "the green park", "two dogs run"]
    others = ["the red ball", "the red ball", "a blue car", "two cats", "two dogs run fast"]
    labels = np.asarray([4, 5, 2.5, 0, 4.5], np.float32)
    return Task("plain", "0123456789ab", tuple(sentences), tuple(others), None, labels, (0.0, 5.0))


def test_evaluate_without_conditions_has_no_condition_only_baseline(plain_task):
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


def test_evaluate_without_conditions_over_estimation_is_an_error(plain_task):
    with pytest.raises(InputError, match="over-estimation is counted on pairs"):
        evaluate(baseline("word-overlap"), plain_task, over_estimation=True)


def test_evaluate_without_conditions_report_is_written_read_and_shown(plain_task, tmp_path):
    report = evaluate(baseline("word-overlap"), plain_task, resamples=5)
    report.to_json(tmp_path / "report.json")
    assert to_markdown(Report.from_json(tmp_path / "report.json")) == to_markdown(report)
    assert "Partial: Spearman once" not in to_markdown(report)


def test_evaluate_without_conditions_bi_and_cross_encoder(plain_task, tiny_backbone):
    from condsim.model.builders import build_bi_encoder, build_cross_encoder
    from condsim.model.torch import CrossEncoderScorer, EncoderScorer

    bi = EncoderScorer(build_bi_encoder(str(tiny_backbone)), name="bi")
    cross = CrossEncoderScorer(build_cross_encoder(str(tiny_backbone)), name="cross")
    report = evaluate(bi, plain_task, against=cross, resamples=5)
    for result in (report.model, report.against):
        assert math.isfinite(result.metrics["spearman"].value)


def test_evaluate_word_overlap_on_stsb():
    if not STSB.exists():
        pytest.skip("the STS-B files are not here")
    report = evaluate(baseline("word-overlap"), load_task(STSB), resamples=20)
    assert (report.valid_rows, report.contrasting_pairs) == (1500, 0)
    assert 60 < report.model.metrics["spearman"].value < 75
