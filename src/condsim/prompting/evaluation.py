"""Measure a prompted language model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from condsim.errors import InputError
from condsim.evaluation.evaluate import FEWEST_ROWS, Scores, evaluate, labelled_rows
from condsim.evaluation.report import Report, ResultFile
from condsim.prompting.scorer import PromptScorer, likert_range
from condsim.types import BoolArray, Scorer, Task


class PromptReport(ResultFile):
    """The result of prompting a model.

    Attributes:
        settings: The model and its prompt: `PromptSettings` as plain values.
        invalid: Labelled rows whose answer is not a number, in %; they count with a random value.
        out_of_range: Labelled rows whose answer is a number outside the scale, in %.
        expected: Labelled rows whose score is an expected value, in %.
        usage: Requests, tokens and rows answered from the store, of the run that made the report.
        notes: Deviations from the usual prompting, such as sampled answers.
        report: All labelled rows.
        valid_only: The rows with a valid answer alone; None if they are too few.
    """

    what = "prompt report"

    prompt_format: Literal[1] = 1
    settings: Mapping[str, Any]
    invalid: float
    out_of_range: float
    expected: float
    usage: Mapping[str, int]
    notes: tuple[str, ...]
    report: Report
    valid_only: Report | None


def evaluate_prompt(
    scorer: PromptScorer,
    task: Task,
    *,
    settings: Mapping[str, Any],
    condition_only: Scorer | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PromptReport:
    """Prompt a model for the labelled rows of a task and measure its answers.

    Args:
        scorer: The prompted model.
        task: The rows, at least 3 of them with a label.
        settings: The settings of the scorer, for the report.
        condition_only: See `evaluate`; not used for the valid rows alone.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.

    Raises:
        InputError: If fewer than 3 rows have a label, or the instruction's scale is not that of
            the labels.
        BackendError: If the model does not answer or the budget is used up; run again to go on.
    """
    rows = labelled_rows(task)
    scale = likert_range(conditional=rows.conditions is not None)
    if scale != rows.label_range:
        raise InputError(
            f"{task.name}: the labels are from {rows.label_range[0]:g} to {rows.label_range[1]:g} "
            f"and the instruction asks for {scale[0]:g} to {scale[1]:g}. Give C-STS or STS-B data."
        )
    predictions = scorer.predict(rows.sentences1, rows.sentences2, rows.conditions)
    report = evaluate(
        Scores(scorer.name, predictions.unit),
        rows,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
    )
    valid_only = None
    valid_rows = np.flatnonzero(predictions.valid)
    if len(valid_rows) >= FEWEST_ROWS:
        valid_scores = Scores(scorer.name, predictions.unit[valid_rows])
        valid_only = evaluate(valid_scores, rows.take(valid_rows), resamples=resamples, seed=seed)
    return PromptReport(
        settings=settings,
        invalid=_percent(~predictions.valid),
        out_of_range=_percent(predictions.valid & ~predictions.in_range),
        expected=_percent(predictions.expected),
        usage=asdict(scorer.asker.usage),
        notes=scorer.asker.backend.notes,
        report=report,
        valid_only=valid_only,
    )


def _percent(rows: BoolArray) -> float:
    return 100.0 * float(rows.mean())
