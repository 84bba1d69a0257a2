"""Results of a prompted model, with its invalid answers counted (C-STS A.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Literal

import numpy as np

from condsim.errors import InputError
from condsim.evaluation.measuring import FEWEST_ROWS, Scores, measure
from condsim.evaluation.report import Report, ResultFile
from condsim.prompting import PromptScorer, likert_range
from condsim.types import BoolArray, Scorer, Task


class PromptReport(ResultFile):
    """The result of prompting a model.

    Attributes:
        prompt_format: Version of the file format.
        settings: What was asked of which model: `condsim.prompting.PromptSettings` as plain values.
        invalid: Labelled rows whose answer is no number, in %; they count with a random value.
        out_of_range: Labelled rows whose answer is a number that is not on the scale, in %.
        expected: Labelled rows whose score is an expected value, in %.
        usage: Requests, tokens and rows answered from the store, of the run that made the report.
        notes: How the model was asked otherwise than usual, such as sampled.
        report: All labelled rows.
        valid_only: The rows with a valid answer alone; None if they are too few.
    """

    _kind: ClassVar[str] = "report of a prompted model"
    _format_key: ClassVar[str] = "prompt_format"
    _again: ClassVar[str] = (
        "Run the same 'condsim prompt' again; stored answers are not asked for again."
    )

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
    """Prompts a model for the labelled rows of a task and measures what it answered.

    Args:
        settings: What the scorer was made of, for the report.
        condition_only: See `condsim.evaluation.evaluate`; not used for the valid rows alone.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.
        seed: Seed of the resamples.

    Raises:
        InputError: If fewer than 3 rows have a label, or the instruction's scale is not that of
            the labels.
        BackendError: If the model does not answer or the budget is used up; run again to go on.
    """
    rows = task.labelled()
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"{task.name}: {FEWEST_ROWS} rows with a label are needed, got {len(rows)} among "
            f"{len(task)}. Give a labelled file."
        )
    scale = likert_range(conditional=rows.conditions is not None)
    if scale != rows.label_range:
        raise InputError(
            f"{task.name}: the labels are from {rows.label_range[0]:g} to {rows.label_range[1]:g} "
            f"and the instruction asks for {scale[0]:g} to {scale[1]:g}. Give C-STS or STS-B data."
        )
    predictions = scorer.predict(rows.sentences1, rows.sentences2, rows.conditions)
    scores = predictions.unit
    report = measure(
        Scores(scorer.name, scores),
        rows,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
    )
    valid_only = None
    kept = np.flatnonzero(predictions.valid)
    if len(kept) >= FEWEST_ROWS:
        alone = Scores(scorer.name, scores[kept])
        valid_only = measure(alone, rows.take(kept), resamples=resamples, seed=seed)
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
