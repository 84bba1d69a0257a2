from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.report import to_markdown, to_table


@pytest.fixture
def report(make_task, make_scorer):
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 6, size=60)
    model = make_scorer("a|b [bold]", labels + generator.normal(size=60))
    return evaluate(
        model,
        make_task(labels),
        baselines=["word-overlap"],
        against=make_scorer("second", generator.random(60)),
        resamples=20,
    )


def printed(table, *, width=80):
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)
    return stream.getvalue()


def test_to_table_shows_every_result_whole_in_80_columns(report):
    text = printed(to_table(report))
    for name in ("a|b [bold]", "second", "condition-only", "word-overlap", "difference"):
        assert name in text
    spearman = report.model.metrics["spearman"]
    assert f"{spearman.value:.1f}" in text
    assert f"{spearman.low:.1f}…{spearman.high:.1f}" in text
    assert f"p = {report.comparison['spearman'].p_value:.3f}" in text
    assert "out of fold" in text
    assert max(map(len, text.splitlines())) <= 80


def test_to_table_undefined_metric_is_a_dash(report):
    line = next(line for line in printed(to_table(report)).splitlines() if "condition-only" in line)
    assert line.split()[-1] == "-"


def test_to_markdown_is_a_pipe_table(report):
    lines = to_markdown(report).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| | Spearman | Pearson | MSE | Pair acc. | Partial |"
    assert table[2].startswith("| **a\\|b [bold]** | ")
    cells = {len(line.replace("\\|", "").split("|")) for line in table}
    assert cells == {8}
    pearson = report.model.metrics["pearson"]
    assert f"{pearson.value:.1f} [{pearson.low:.1f}, {pearson.high:.1f}]" in table[2]
    assert table[-1].startswith("| difference from second | +")
    assert f"p = {report.comparison['mse'].p_value:.3f}" in table[-1]
    assert to_markdown(report).endswith("seed 0\n")


def test_to_markdown_without_a_second_model_has_no_difference(make_task, make_scorer):
    report = evaluate(make_scorer("model", [1, 2, 3]), make_task([1, 2, 3]), resamples=5)
    assert not {"difference", "p-value"} & set(to_markdown(report).split())
