from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.types import Task
from condsim_llm.backend import Answer, PromptSettings
from condsim_llm.scorer import PromptReport, PromptScorer, evaluate_prompt


def task_of(rows=40):
    labels = np.array([1 + row % 5 for row in range(rows)], np.float32)
    return Task(
        "toy",
        "0",
        tuple(f"left {row // 2}" for row in range(rows)),
        tuple(f"right {row // 2}" for row in range(rows)),
        tuple(f"condition {row % 3} of {label:g}" for row, label in enumerate(labels)),
        labels,
    )


def honest(prompt):
    """The label, but nothing under condition 0 and one too much for left 1."""
    words = prompt.split()
    label = float(words[-2])
    if words[words.index("Condition:") + 2] == "0":
        return Answer("I cannot say.", prompt_tokens=5, new_tokens=4)
    return Answer(str(label + 9 if "left 1\n" in prompt else label), prompt_tokens=5, new_tokens=3)


@pytest.fixture
def scorer_of(fake_backend, tmp_path):
    def make(reply=honest):
        settings = PromptSettings(model="fake", answers=str(tmp_path / "answers.sqlite"))
        return PromptScorer(settings, fake_backend(reply))

    return make


def test_evaluate_prompt_counts_invalid_and_out_of_range(scorer_of):
    task = task_of()
    unlabeled = replace(task, labels=np.where(np.arange(40) == 39, np.nan, task.labels))
    report = evaluate_prompt(scorer_of(), unlabeled, settings={"model": "fake"}, resamples=20)
    # Of 39 rows every third has condition 0; rows 2 and 3 are left 1, and 3 is such a third.
    assert report.invalid == pytest.approx(100 * 13 / 39)
    assert report.out_of_range == pytest.approx(100 * 1 / 39)
    assert report.usage == {
        "stored": 0,
        "requests": 39,
        "prompt_tokens": 195,
        "new_tokens": 13 * 4 + 26 * 3,
    }
    assert report.report.valid_rows == 39
    assert report.valid_only is not None
    assert report.valid_only.valid_rows == 26
    spearman = report.valid_only.model.metrics["spearman"].value
    assert spearman > report.report.model.metrics["spearman"].value
    assert report.report.baselines[0].name == "condition-only"


def test_prompt_report_json_reads_back_equal(tmp_path, scorer_of):
    report = evaluate_prompt(scorer_of(), task_of(), settings={"model": "fake"}, resamples=20)
    report.to_json(tmp_path / "report.json")
    read = PromptReport.from_json(tmp_path / "report.json")
    read.to_json(tmp_path / "again.json")  # NaN is not equal to itself; the files are
    assert (tmp_path / "again.json").read_text() == (tmp_path / "report.json").read_text()
    assert (read.settings, read.usage, read.invalid) == (
        report.settings,
        report.usage,
        report.invalid,
    )


def test_evaluate_prompt_all_invalid_has_no_figures_of_valid_rows(tmp_path, scorer_of):
    scorer = scorer_of(lambda prompt: Answer(""))
    report = evaluate_prompt(scorer, task_of(), settings={}, resamples=20)
    assert report.invalid == 100
    assert report.valid_only is None
    report.to_json(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["valid_only"] is None


def test_evaluate_prompt_labels_on_another_scale_raise_before_asking(tmp_path, scorer_of):
    scorer = scorer_of()
    with pytest.raises(InputError, match=r"labels are from 1 to 5 and the instruction asks for 0"):
        evaluate_prompt(scorer, replace(task_of(), conditions=None), settings={})
    assert not list(tmp_path.iterdir())
